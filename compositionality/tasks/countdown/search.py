"""Drawing sound problems: numbers first, then one of the targets that they reach, for many problems at once.

Numbers are drawn uniformly. Of all targets that they reach, lie in range and belong to the stream, each is equally
likely; the solver's tables prove that it is reached, and count how often. Every draw depends on (stream, index,
attempt) only, so a problem is the same alone and in a batch.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compositionality.tasks.countdown.options import CountdownOptions
from compositionality.tasks.countdown.partition import Whole, class_of, numbers_bits, owned_classes
from compositionality.tasks.countdown.plan import Array, Table, make_plan
from compositionality.tasks.countdown.solver import allowed_blocks
from compositionality.tasks.draws import Bits, below, combine, key_bits

ATTEMPTS = 2_048
CELLS = 240_000
WIDEST = 2_048
_NONE = np.uint64(2**64 - 1)


class Found(NamedTuple):
    """The sound problem at an index: numbers as drawn, target, and its solutions as (block, row, whole) of the plan.

    fewest: how many of the numbers reach the target; word: for further draws.
    """

    at: int
    numbers: list[int]
    target: int
    fewest: int
    solutions: list[tuple[int, int, bool]]
    word: int


class Search:
    """The draws of one stream at one level."""

    def __init__(self, options: CountdownOptions, level: int, split: str, seed: int) -> None:
        self.options, self.level = options, level
        self.plan = make_plan(level, options.operators)
        self._key = key_bits(repr((options.content(), level, split, seed)))
        self._owned = owned_classes(split, seed)
        self._blocks = [mask for mask in allowed_blocks(self.plan, options.use) if mask.bit_count() > 1]
        self._width = max(1, min(WIDEST, CELLS // self.plan.rows))

    def find(self, indices: Sequence[int]) -> Iterator[Found]:
        """The problems at ``indices``, in no particular order; those without one after all attempts are left out."""
        left, first, more = np.array(indices, dtype=np.int64), 0, 1
        while len(left) and first < ATTEMPTS:
            done: set[int] = set()
            for start in range(0, len(left), max(1, self._width // more)):
                batch = left[start : start + max(1, self._width // more)]
                for found in self._try(np.repeat(batch, more), np.tile(np.arange(first, first + more), len(batch))):
                    if found.at not in done:  # the first sound attempt counts, however many are made at once
                        done.add(found.at)
                        yield found
            left = np.array([index for index in left.tolist() if index not in done], dtype=np.int64)
            first, more = first + more, min(2 * more, 64)

    def _try(self, indices: Whole, attempts: Whole) -> Iterator[Found]:
        """The sound ones among candidates, in their order."""
        words = combine(combine(np.full(len(indices), self._key), indices), attempts)
        low, high = self.options.numbers
        drawn = np.stack([low + below(combine(words, np.array([slot])), high - low + 1) for slot in range(self.level)])
        ordered = np.sort(drawn, axis=0)
        tables = self.plan.evaluate(ordered.astype(np.float64))
        reached = [whole_values(table) for table in tables]
        targets = self._choose(tables, reached, words, numbers_bits(ordered))
        right = [values == targets for values in reached]
        fewest = self._fewest(right, len(indices))
        sound = targets > 0
        if self.options.minimal:
            sound &= fewest == self.level
        if self.options.use == "any":
            sound &= fewest > 1
        columns = np.flatnonzero(sound)
        solutions = self._solutions(tables, right, columns)
        rest = (indices[columns], drawn[:, columns].T, targets[columns], fewest[columns])
        yield from map(Found, *(array.tolist() for array in rest), solutions, words[columns].tolist())

    def _choose(self, tables: list[Table], reached: list[Array], words: Bits, numbers: Bits) -> Whole:
        """For each candidate one of the targets that it reaches; 0 if there is none."""
        (low, high), best = self.options.target, np.full(len(words), _NONE)
        targets = np.zeros(len(words), np.int64)
        for mask in self._blocks:
            fits = (reached[mask] >= low) & (reached[mask] <= high)
            if self.options.whole:
                fits &= tables[mask].parts
            rows, columns = nonzero(fits)
            values = reached[mask][rows, columns].astype(np.int64)
            mine = self._owned[class_of(numbers[columns], values)]
            columns, values = columns[mine], values[mine]
            ranks = combine(words[columns], values)
            np.minimum.at(best, columns, ranks)
            chosen = ranks == best[columns]
            targets[columns[chosen]] = values[chosen]
        return targets

    def _fewest(self, right: list[NDArray[np.bool_]], problems: int) -> Whole:
        """How many of the numbers reach the target."""
        fewest = np.full(problems, self.level)
        for mask in sorted(range(1, self.plan.full), key=int.bit_count, reverse=True):
            fewest[right[mask].any(axis=0)] = mask.bit_count()
        return fewest

    def _solutions(
        self, tables: list[Table], right: list[NDArray[np.bool_]], columns: Whole
    ) -> Iterator[list[tuple[int, int, bool]]]:
        """For each of the columns, the allowed forms that are right."""
        position = np.full(right[0].shape[1], -1)
        position[columns] = np.arange(len(columns))
        places = []
        for mask in self._blocks:
            rows, problems = nonzero(right[mask])
            asked = position[problems] >= 0
            rows, problems = rows[asked], problems[asked]
            whole = tables[mask].parts[rows, problems]
            places.append(np.stack([position[problems], np.full(len(rows), mask), rows, whole]))
        together = np.concatenate(places, axis=1)
        together = together[:, np.argsort(together[0], kind="stable")]
        ends = np.cumsum(np.bincount(together[0], minlength=len(columns))).tolist()
        forms = list(zip(*together[1:].tolist(), strict=True))
        return (forms[begin:end] for begin, end in zip([0, *ends], ends, strict=False))


def whole_values(table: Table) -> Array:
    """The value of each form without its sign, or no positive number if it is not whole or not defined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values: Array = np.rint(table.num / table.den)
        values *= values * table.den == table.num
    return np.abs(values, out=values)


def nonzero(found: NDArray[np.bool_]) -> tuple[Whole, Whole]:
    """Rows and columns of what is true, as np.nonzero gives them, but many times as fast where little is."""
    return np.divmod(np.flatnonzero(found), found.shape[1])
