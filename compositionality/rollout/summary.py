"""Counts over rollouts, shard by shard: accuracy by group and level, reasons, lengths."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Table

from compositionality.console import new_table
from compositionality.stats.estimate import over_problems
from compositionality.types import Estimate, Reason

Cell = tuple[str, int]
"""Group and level."""


class RolloutSummary:
    """Running counts; two numbers per problem are kept, whatever the number of samples."""

    def __init__(self, problems: pa.Table) -> None:
        """``problems``: the problem file, of which ``level`` and ``group`` are read."""
        self._groups, self._levels = problems["group"].to_numpy(), problems["level"].to_numpy()
        self._correct = np.zeros(problems.num_rows, np.int64)  # per problem
        self._judged = np.zeros(problems.num_rows, np.int64)
        self._reasons: Counter[tuple[Cell, str]] = Counter()
        self._tokens: Counter[Cell] = Counter()

    def add(self, shard: pa.Table) -> None:
        """Count the rows of one shard."""
        counts = shard.group_by(["group", "level", "reason"]).aggregate([("n_tokens", "sum"), ("n_tokens", "count")])
        for row in counts.to_pylist():
            cell = row["group"], row["level"]
            self._reasons[cell, row["reason"]] += row["n_tokens_count"]
            self._tokens[cell] += row["n_tokens_sum"]
        self._count(shard, self._correct, pc.equal(shard["reason"], Reason.CORRECT))
        self._count(shard, self._judged, pc.not_equal(shard["reason"], Reason.ERROR))

    def _count(self, shard: pa.Table, into: np.ndarray, chosen: pa.ChunkedArray) -> None:
        problems = shard["problem"].filter(chosen).to_numpy()
        into += np.bincount(problems, minlength=len(into))

    @property
    def cells(self) -> list[Cell]:
        """All pairs (group, level), in order."""
        return sorted(self._tokens)

    def accuracy(self, cell: Cell) -> Estimate | None:
        """Share of correct among judged completions, with problems as clusters; None if nothing was judged."""
        rows = (self._groups == cell[0]) & (self._levels == cell[1])
        return over_problems(self._correct[rows], self._judged[rows])

    def total(self, cell: Cell) -> int:
        """Completions of one group and level."""
        return sum(count for (of, _), count in self._reasons.items() if of == cell)

    def facts(self) -> dict[str, object]:
        """The figures for the manifest: whole numbers only."""
        reasons: Counter[str] = Counter()
        for (_, reason), count in self._reasons.items():
            reasons[reason] += count
        levels = [
            {"group": cell[0], "level": cell[1], "n": self.total(cell), "correct": self._reasons[cell, Reason.CORRECT]}
            for cell in self.cells
        ]
        tokens = sum(self._tokens.values())
        return {"rows": reasons.total(), "tokens": tokens, "reasons": dict(sorted(reasons.items())), "levels": levels}

    def table(self) -> Table:
        """Accuracy with its 95 % interval, mean length and the share of each other reason, by group and level."""
        seen = {reason for (_, reason), count in self._reasons.items() if count}
        reasons = [reason for reason in Reason if reason in seen and reason is not Reason.CORRECT]
        shown = [f"{reason} %" for reason in reasons]
        table = new_table("group", "level", "n", "correct %", "95 % interval", "mean tokens", *shown)
        for cell in self.cells:
            table.add_row(*self._row(cell, reasons))
        return table

    def _row(self, cell: Cell, reasons: Sequence[Reason]) -> list[str]:
        n, found = self.total(cell), self.accuracy(cell)
        value, interval = "–", "–"
        if found is not None:
            value, interval = f"{100 * found.value:.1f}", f"{100 * found.low:.1f} – {100 * found.high:.1f}"
        shares = [f"{100 * self._reasons[cell, reason] / n:.1f}" for reason in reasons]
        return [cell[0], str(cell[1]), str(n), value, interval, f"{self._tokens[cell] / n:.1f}", *shares]
