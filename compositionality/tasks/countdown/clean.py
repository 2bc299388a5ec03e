"""The clean mode: solvable problems by random access, with splits that cannot overlap.

Numbers are drawn uniformly. Of all targets that they reach, lie in range and belong to the stream, each is equally
likely; the solver's tables prove that it is reached, and count how often. Every draw depends on (options, level, split,
seed, index, attempt) only, so a problem is the same alone and in a batch.

A hash of numbers and target assigns each problem to one (split, seed modulo SEED_CLASSES), so different splits and
neighbouring seeds share no problem, and any row can be checked.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compositionality.errors import UserError
from compositionality.tasks.countdown.solve import (
    EXACT,
    LEVELS,
    OPERATOR_SETS,
    Array,
    Table,
    allowed_blocks,
    form_key,
    labels_of,
    make_plan,
    write,
)
from compositionality.tasks.countdown.wording import OPERATORS, compact_prompt, compact_trace, ground_truth, text_prompt
from compositionality.tasks.draws import SEED_CLASSES, SHARES, SPLITS, Bits, below, check_split, combine, key_bits
from compositionality.tasks.stream import check_choice, check_levels
from compositionality.types import Problem

GROUP = "countdown"
MAX_ATTEMPTS = 2_048  # draws for one problem
MAX_CELLS = 240_000  # values in the tables of one batch
MAX_WIDTH = 2_048  # problems in one batch
_NO_RANK = np.uint64(2**64 - 1)
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class CountdownOptions:
    """Options of the clean mode; the level of a problem is how many numbers it gives."""

    levels: tuple[int, ...] = (3,)  # how many numbers; candidates take turns
    numbers: tuple[int, int] = (1, 100)  # smallest and largest, both included
    target: tuple[int, int] = (1, 999)  # smallest and largest, both included
    operators: str = OPERATORS  # that may be used
    use: str = "all"  # all numbers, or any of them
    whole: bool = True  # some solution has only whole, positive values on its way
    minimal: bool = False  # fewer numbers do not suffice
    style: str = "text"  # of the prompt: text, or compact (whole=true only)

    def __post_init__(self) -> None:
        check_choice("use", self.use, ("all", "any"))
        check_choice("style", self.style, ("text", "compact"))
        if self.style == "compact" and not self.whole:
            raise UserError("style=compact writes whole numbers only; use whole=true or style=text")
        check_choice("operators", self.operators, OPERATOR_SETS)
        check_levels(self.levels, LEVELS, "how many numbers to give")
        for name, pair in (("numbers", self.numbers), ("target", self.target)):
            if len(pair) != 2 or not all(type(end) is int for end in pair) or not 1 <= pair[0] <= pair[1]:
                raise UserError(f"{name}={list(pair)}: give smallest and largest, whole numbers from 1 on, as [1,100]")
        largest, most = self.numbers[1], max(self.levels)
        if (2 * largest) ** most >= EXACT:
            largest = max(n for n in range(1, int(EXACT ** (1 / most)) + 1) if (2 * n) ** most < EXACT)
            raise UserError(
                f"numbers={list(self.numbers)}: levels up to {most} are solved with numbers up to {largest}"
            )
        reach = max(largest * most, largest**most if "*" in self.operators else 0)
        if reach < self.target[0]:
            raise UserError(
                f"target={list(self.target)} is out of reach of {most} numbers up to {largest}; lower it or raise them"
            )


@dataclass(slots=True)
class SolvedDraw:
    """The sound problem at an index: numbers as drawn, target, and its solutions as (block, row, whole) of the plan.

    fewest: how many of the numbers suffice, if it were allowed to leave some out; bits: for further draws.
    """

    index: int
    numbers: list[int]
    target: int
    fewest: int
    solutions: list[tuple[int, int, bool]]
    bits: int


def problems(options: CountdownOptions, split: str, seed: int, indices: Iterable[int]) -> Iterator[Problem]:
    """Yield the problems at ``indices`` of the stream (options, split, seed), in order; many at once are much faster.

    The levels take turns.
    """
    wanted = list(indices)
    levels = options.levels
    rows: dict[int, Problem] = {}
    for place, level in enumerate(levels):
        at_level = [index for index in wanted if index % len(levels) == place]
        for draw in _search(options, level, split, seed).find(at_level):
            rows[draw.index] = _row(options, level, seed, draw)
    for index in wanted:
        if index not in rows:
            raise UserError(
                f"no sound problem of level {levels[index % len(levels)]} found for {split}/{seed}/{index}; "
                f"widen numbers (now {list(options.numbers)}) or target (now {list(options.target)})"
            )
        yield rows[index]


def _row(options: CountdownOptions, level: int, seed: int, draw: SolvedDraw) -> Problem:
    """Return the row of a draw. Its gold solution has whole steps if there is one, and few operations."""
    plan = make_plan(level, options.operators)
    ordered = sorted(draw.numbers)
    count = len(draw.solutions)
    if len(set(ordered)) < level:  # solutions that exchange equal numbers are one
        labels = labels_of(ordered)
        count = len({form_key(plan.form(mask, row), labels)[0] for mask, row, _ in draw.solutions})
    best = [solution for solution in draw.solutions if solution[2]] or draw.solutions
    least = best[0][0].bit_count()  # small blocks come first
    best = [solution for solution in best if solution[0].bit_count() == least]
    mask, row, _ = best[draw.bits % len(best)]
    gold = write(plan.form(mask, row), ordered)
    if options.style == "compact":
        prompt = compact_prompt(draw.numbers, draw.target, options.operators)
    else:
        prompt = text_prompt(draw.numbers, draw.target, options.operators, options.use)
    truth = ground_truth(draw.numbers, draw.target, options.style, options.use, options.operators)
    metadata = {
        "seed": seed,
        "solutions": count,  # up to order, brackets and moved minus signs
        "operations": draw.solutions[0][0].bit_count() - 1,  # the fewest in any of them
        "fewest_numbers": draw.fewest,
        "expression": gold.expression,
        "trace": compact_trace(draw.numbers, gold.steps),
    }
    return Problem(f"countdown-clean-level{level}", level, GROUP, prompt, truth, draw.index, metadata)


@lru_cache(maxsize=64)
def _search(options: CountdownOptions, level: int, split: str, seed: int) -> "Search":
    return Search(options, level, split, seed)


class Search:
    """The draws of one stream at one level."""

    def __init__(self, options: CountdownOptions, level: int, split: str, seed: int) -> None:
        self.options, self.level = options, level
        self.plan = make_plan(level, options.operators)
        content = [(name, value) for name, value in asdict(options).items() if name != "style"]  # which is the wording
        self._key = key_bits(repr((content, level, split, seed)))
        check_split(split, SPLITS)
        classes = [(share, number) for share in SHARES for number in range(SEED_CLASSES)]
        self._owned = np.array([name == (split, seed % SEED_CLASSES) for name in classes])
        self._blocks = [mask for mask in allowed_blocks(self.plan, options.use) if mask.bit_count() > 1]
        self._width = max(1, min(MAX_WIDTH, MAX_CELLS // self.plan.rows))

    def find(self, indices: Sequence[int]) -> Iterator[SolvedDraw]:
        """Yield the problems at ``indices`` in no particular order, without those not found after all attempts."""
        unsolved = np.array(indices, dtype=np.int64)
        tried, at_once = 0, 1  # attempts made, and made at once
        while len(unsolved) and tried < MAX_ATTEMPTS:
            solved: set[int] = set()
            for start in range(0, len(unsolved), max(1, self._width // at_once)):
                batch = unsolved[start : start + max(1, self._width // at_once)]
                attempts = np.tile(np.arange(tried, tried + at_once), len(batch))
                for draw in self._try(np.repeat(batch, at_once), attempts):
                    if draw.index not in solved:  # the first sound attempt counts, however many are made at once
                        solved.add(draw.index)
                        yield draw
            unsolved = np.array([index for index in unsolved.tolist() if index not in solved], dtype=np.int64)
            tried, at_once = tried + at_once, min(2 * at_once, 64)

    def _try(self, indices: Whole, attempts: Whole) -> Iterator[SolvedDraw]:
        """Yield the sound ones among candidates, in their order."""
        bits = combine(combine(np.full(len(indices), self._key), indices), attempts)
        low, high = self.options.numbers
        drawn = np.stack([low + below(combine(bits, np.array([slot])), high - low + 1) for slot in range(self.level)])
        ordered = np.sort(drawn, axis=0)
        tables = self.plan.evaluate(ordered.astype(np.float64))
        reached = [whole_values(table) for table in tables]
        targets = self._choose(tables, reached, bits, numbers_bits(ordered))
        right = [values == targets for values in reached]
        fewest = np.full(len(indices), self.level)  # how many of the numbers reach the target
        for mask in sorted(range(1, self.plan.full), key=int.bit_count, reverse=True):
            fewest[right[mask].any(axis=0)] = mask.bit_count()
        sound = targets > 0
        if self.options.minimal:
            sound &= fewest == self.level
        if self.options.use == "any":
            sound &= fewest > 1
        columns = np.flatnonzero(sound)
        solutions = self._solutions(tables, right, columns)
        rest = (indices[columns], drawn[:, columns].T, targets[columns], fewest[columns])
        yield from map(SolvedDraw, *(array.tolist() for array in rest), solutions, bits[columns].tolist())

    def _choose(self, tables: list[Table], reached: list[Array], bits: Bits, numbers: Bits) -> Whole:
        """Return for each candidate one of the targets that it reaches; 0 if there is none."""
        low, high = self.options.target
        best = np.full(len(bits), _NO_RANK)
        targets = np.zeros(len(bits), np.int64)
        for mask in self._blocks:
            fits = (reached[mask] >= low) & (reached[mask] <= high)
            if self.options.whole:
                fits &= tables[mask].parts
            rows, columns = nonzero(fits)
            values = reached[mask][rows, columns].astype(np.int64)
            owned = self._owned[class_of(numbers[columns], values)]
            columns, values = columns[owned], values[owned]
            ranks = combine(bits[columns], values)
            np.minimum.at(best, columns, ranks)
            chosen = ranks == best[columns]
            targets[columns[chosen]] = values[chosen]
        return targets

    def _solutions(
        self, tables: list[Table], right: list[NDArray[np.bool_]], columns: Whole
    ) -> Iterator[list[tuple[int, int, bool]]]:
        """Return for each of the columns the allowed forms that are right."""
        position = np.full(right[0].shape[1], -1)
        position[columns] = np.arange(len(columns))
        places = []
        for mask in self._blocks:
            rows, problems = nonzero(right[mask])
            is_sound = position[problems] >= 0
            rows, problems = rows[is_sound], problems[is_sound]
            whole = tables[mask].parts[rows, problems]
            places.append(np.stack([position[problems], np.full(len(rows), mask), rows, whole]))
        together = np.concatenate(places, axis=1)
        together = together[:, np.argsort(together[0], kind="stable")]
        ends = np.cumsum(np.bincount(together[0], minlength=len(columns))).tolist()
        forms = list(zip(*together[1:].tolist(), strict=True))
        return (forms[begin:end] for begin, end in zip([0, *ends], ends, strict=False))


def whole_values(table: Table) -> Array:
    """Return the value of each form without its sign, or no positive number if it is not whole or not defined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values: Array = np.rint(table.num / table.den)
        values *= values * table.den == table.num
    return np.abs(values, out=values)


def nonzero(table: NDArray[np.bool_]) -> tuple[Whole, Whole]:
    """Return rows and columns of what is true, as np.nonzero does, but many times as fast where little is."""
    return np.divmod(np.flatnonzero(table), table.shape[1])


def numbers_bits(ordered: Whole) -> Bits:
    """Return bits for each multiset of numbers; shape (n, problems), in ascending order."""
    bits = np.zeros(ordered.shape[1], np.uint64)
    for row in ordered:
        bits = combine(bits, row)
    return bits


def class_of(bits: Bits, targets: Whole) -> Whole:
    """Return the classes of problems with these numbers and targets: place in SHARES times SEED_CLASSES, plus seed."""
    return ((combine(bits, targets) >> np.uint64(32)) % np.uint64(len(SHARES) * SEED_CLASSES)).astype(np.int64)


def owner(numbers: Sequence[int], target: int) -> tuple[str, int]:
    """Return the split and the seed modulo SEED_CLASSES that may use a problem."""
    ordered = np.array(sorted(numbers), dtype=np.int64)[:, None]
    share, seed = divmod(int(class_of(numbers_bits(ordered), np.array([target]))[0]), SEED_CLASSES)
    return SHARES[share], seed
