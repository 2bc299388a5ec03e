"""Evaluations of training runs, as a law is fitted to them.

Names of arrays: P points.
"""

# ruff: noqa: N803, N806

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compositionality.errors import UserError
from compositionality.stats.estimate import Floats

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Points:
    """One evaluation each, (P,): number of its run, size of the model, step, what was spent until then, loss."""

    runs: tuple[str, ...]  # names
    run: Rows
    size: Floats
    step: Rows
    resource: Floats
    loss: Floats

    def __post_init__(self) -> None:
        for name, values in (("size", self.size), ("resource", self.resource), ("loss", self.loss)):
            wrong = ~(np.isfinite(values) & (values > 0))
            if wrong.any():
                place = int(np.argmax(wrong))
                raise UserError(
                    f"{self.runs[self.run[place]]}, step {self.step[place]}: {name} {values[place]:g} has no "
                    "logarithm; leave this evaluation out"
                )

    def __len__(self) -> int:
        return len(self.loss)

    @property
    def sizes(self) -> Floats:
        """From the smallest to the largest."""
        return np.unique(self.size)

    def where(self, chosen_P: NDArray[np.bool_]) -> "Points":
        """These points alone; runs keep their numbers."""
        rows, numbers = (self.run, self.step), (self.size, self.resource, self.loss)
        run, step = (values[chosen_P] for values in rows)
        size, resource, loss = (values[chosen_P] for values in numbers)
        return Points(self.runs, run, size, step, resource, loss)

    def runs_of(self, size: float) -> Rows:
        """Numbers of the runs of a size."""
        return np.unique(self.run[self.size == size])

    def early(self, share: float) -> NDArray[np.bool_]:
        """(P,): up to this share of the steps of the run's size."""
        last_P = np.array([self.step[self.size == size].max() for size in self.size])
        found: NDArray[np.bool_] = self.step <= share * last_P
        return found

    def mean_curves(self) -> "Points":
        """The mean over the runs of a size at each step that all of them have, in log loss; one run a size."""
        rows = list[tuple[int, float, int, float, float]]()
        for number, size in enumerate(self.sizes):
            mine = self.where(self.size == size)
            n_runs = len(mine.runs_of(size))
            for step in np.unique(mine.step):
                at = mine.step == step
                if at.sum() == n_runs:
                    resource, loss = (float(np.exp(np.log(of[at]).mean())) for of in (mine.resource, mine.loss))
                    rows.append((number, float(size), int(step), resource, loss))
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        return Points(tuple(f"{size:,.0f}" for size in self.sizes), *columns)
