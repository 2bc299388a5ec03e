"""The split ledger: evaluation files may not repeat what was trained on.

The task defines when two problems, compositions or behaviours are the same (``Task.identity``). Problems may never be
shared; compositions may not be shared if the functions were held out (column ``group``).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from compositionality.data.problems import iterate_problems, read_problems
from compositionality.errors import UserError
from compositionality.tasks.registry import task_of
from compositionality.tasks.task import Identity

HELD_OUT = frozenset({"heldout", "heldout-ordered"})
"""Groups of problems whose functions no training composes."""


class Leak(NamedTuple):
    """A row of an evaluation file that is in a training file; ``kind``: problem, composition or behaviour."""

    kind: str
    row: int
    key: str
    source: tuple[Path, int]


class SplitLedger:
    """The problems, compositions and behaviours of training files."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], tuple[Path, int]] = {}  # file and row by kind and key

    def add_training(self, path: Path) -> None:
        for row, _, keys in identities(path):
            for kind, key in keys._asdict().items():
                if key is not None:
                    self._places.setdefault((kind, key), (path, row))

    def leaks(self, path: Path, *, held_out: bool | None = None) -> Iterator[Leak]:
        """Yield rows of ``path`` that a training file has too; if ``held_out`` also by composition (None: by group)."""
        for row, is_held_out, keys in identities(path):
            everything = is_held_out if held_out is None else held_out
            for kind, key in keys._asdict().items() if everything else [("problem", keys.problem)]:
                if place := self._places.get((kind, key or "")):
                    shown = keys.problem if kind == "problem" else keys.composition or ""
                    yield Leak(kind, row, shown, place)
                    break

    def check(self, path: Path, *, shown_as: Path | None = None) -> None:
        """Raise UserError that names the first leaking row, and the number of leaks."""
        if leaks := list(self.leaks(path)):
            kind, row, key, (source, source_row) = leaks[0]
            raise UserError(
                f"{shown_as or path}: row {row} has the same {kind} ({key[:80]}) as {source} row {source_row}; "
                f"{len(leaks)} such rows in all; use another seed, split or set of functions"
            )


def identities(path: Path) -> Iterator[tuple[int, bool, Identity]]:
    """Yield (row, were its functions held out?, identity) of each problem. UserError names a damaged row."""
    for row, problem in enumerate(iterate_problems(read_problems(path))):
        try:
            keys = task_of(problem.data_source).identity(problem)
        except UserError as error:
            raise UserError(f"{path}: row {row} {error}") from error
        yield row, problem.group in HELD_OUT, keys
