"""The split ledger: what has been trained on may not come back as evaluation.

What a problem, a composition and its behaviour are is the task's to say (``Task.identity``). Problems may never be
shared; compositions may not come back where the functions were held out (column ``group``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from compositionality.data.problems import iterate_problems, read_problems
from compositionality.errors import UserError
from compositionality.tasks.registry import task_of
from compositionality.tasks.task import Identity

HELD_OUT = frozenset({"heldout", "heldout-ordered"})
"""Groups of problems whose functions no training composes."""


class RowIdentity(NamedTuple):
    """What a row is recognised by, and whether its functions were held out."""

    row: int
    held_out: bool
    keys: Identity


@dataclass(frozen=True, slots=True)
class Leak:
    """A row of an evaluation file that is also in a training file: the same problem, composition or behaviour."""

    kind: str
    row: int
    key: str
    other: tuple[Path, int]


class SplitLedger:
    """What the training files hold."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], tuple[Path, int]] = {}  # file and row by kind and key

    def add_training(self, path: Path) -> None:
        """Enter a training file."""
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
        found = list(self.leaks(path))
        if found:
            first, (other, row) = found[0], found[0].other
            raise UserError(
                f"{shown_as or path}: row {first.row} has the same {first.kind} ({first.key[:80]}) as {other} row "
                f"{row}; {len(found)} such rows in all; make it with another seed, split or set of functions"
            )


def identities(path: Path) -> Iterator[RowIdentity]:
    """Return what the rows of a problem file are recognised by. UserError names file and row if a row is damaged."""
    for row, problem in enumerate(iterate_problems(read_problems(path))):
        try:
            keys = task_of(problem.data_source).identity(problem)
        except UserError as error:
            raise UserError(f"{path}: row {row} {error}") from error
        yield RowIdentity(row, problem.group in HELD_OUT, keys)
