"""The order in which prompts are asked: a function of the seed alone, so that one number is its whole state."""

from collections.abc import Sequence
from typing import Any

import numpy as np


class PromptStream:
    """Endless passes over a data set, each in an order of its own. Takes the place of verl's training data loader,
    whose state cannot tell where in a partly used pass it stands when an epoch ends.
    """

    def __init__(self, rows: Sequence[dict[str, Any]], *, seed: int, shuffle: bool = True) -> None:
        self.rows = rows
        self.seed = seed
        self.shuffle = shuffle
        self.position = 0
        self.last_step: int | None = None  # of the run, once it is known
        self._order: tuple[int, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, count: int) -> list[dict[str, Any]]:
        """The next ``count`` rows; each gets the key ``uid``, which sorts as the rows were taken."""
        taken = []
        for _ in range(count):
            epoch, offset = divmod(self.position, len(self.rows))
            row = dict(self.rows[int(self._pass(epoch)[offset])])
            taken.append({**row, "uid": uid(self.position)})
            self.position += 1
        return taken

    def left(self, epochs: int) -> int:
        """Prompts that ``epochs`` passes still hold."""
        return epochs * len(self.rows) - self.position

    def state_dict(self) -> dict[str, int | None]:
        """Everything there is to save."""
        return {"position": self.position, "last_step": self.last_step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Counterpart of ``state_dict``."""
        self.position = state["position"]
        self.last_step = state["last_step"]

    def _pass(self, epoch: int) -> np.ndarray:
        if self._order is None or self._order[0] != epoch:
            order = np.arange(len(self.rows))
            if self.shuffle:
                np.random.default_rng([self.seed, epoch]).shuffle(order)
            self._order = epoch, order
        return self._order[1]


def uid(position: int) -> str:
    """Name of a prompt of the stream: digits alone, of equal length, since verl splits names at ``_`` and we sort."""
    return f"{position:012d}"
