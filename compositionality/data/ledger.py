"""The split ledger: what has been trained on may not come back as evaluation.

What a problem, a composition and its behaviour are is the task's to say (``Task.identity``). Problems may never be
shared; compositions may not come back where the functions were held out (column ``group``).
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
    """A row of an evaluation file that a training file has too; ``kind``: as a problem, composition or behaviour."""

    kind: str
    row: int
    key: str
    source: tuple[Path, int]


class SplitLedger:
    """What the training files hold."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], tuple[Path, int]] = {}  # file and row by kind and key

    def add_training(self, path: Path) -> None:
        for row, _, keys in identities(path):
            for kind, key in keys._asdict().items():
                if key is not None:
                    self._places.setdefault((kind, key), (path, row))

    def leaks(self, path: Path, *, held_out: bool | None = None) -> Iterator[Leak]:
        """Yield the rows of ``path`` that a training file has; compositions too if ``held_out`` (None: by group)."""
        for row, is_held_out, keys in identities(path):
            everything = is_held_out if held_out is None else held_out
            for kind, key in keys._asdict().items() if everything else [("problem", keys.problem)]:
                if place := self._places.get((kind, key or "")):
                    shown = keys.problem if kind == "problem" else keys.composition or ""
                    yield Leak(kind, row, shown, place)
                    break

    def check(self, path: Path, *, shown_as: Path | None = None) -> None:
        """Raise UserError that names the first leaking row, and how many there are."""
        if leaks := list(self.leaks(path)):
            kind, row, key, (source, source_row) = leaks[0]
            raise UserError(
                f"{shown_as or path}: row {row} has the same {kind} ({key[:80]}) as {source} row {source_row}; "
                f"{len(leaks)} such rows in all; make it with another seed, split or set of functions"
            )


def identities(path: Path) -> Iterator[tuple[int, bool, Identity]]:
    """Yield (row, whether its functions were held out, what it is recognised by). UserError names a damaged row."""
    for row, problem in enumerate(iterate_problems(read_problems(path))):
        try:
            keys = task_of(problem.data_source).identity(problem)
        except UserError as error:
            raise UserError(f"{path}: row {row} {error}") from error
        yield row, problem.group in HELD_OUT, keys
