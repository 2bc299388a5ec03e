"""All expressions of up to 6 numbers, each once up to commutativity and associativity, for many problems at once.

An expression is a sum of signed terms or a product of factors and divisors; terms are numbers or products, factors are
numbers or sums. Forms that differ by a sign stand for one another: with positive numbers and a positive target just one
of them can be right. A product that divides is stored with its inverse. Blocks of numbers are bit masks; the forms of a
block are the rows of one table, ordered so that every use needs one slice:

    [ inverses | dividing products | plain products | sums ]      a single number is both a term and a factor
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compositionality.tasks.countdown.forms import Form, Node
from compositionality.tasks.countdown.prompts import OPERATORS

Array = NDArray[Any]
"""Whole numbers as float64, exact below ``EXACT``; Python's own (dtype object) where that is too little."""


class Table(NamedTuple):
    """Values of the forms of one block: ``num / den``, shapes (forms, problems); undefined is 0/0 or n/0.

    parts: every value below the form can be made whole and positive; whole: and so can its own.
    """

    num: Array
    den: Array
    parts: NDArray[np.bool_]
    whole: NDArray[np.bool_]

    def rows(self, begin: int, end: int) -> "Table":
        """Some of the forms."""
        return Table(self.num[begin:end], self.den[begin:end], self.parts[begin:end], self.whole[begin:end])


class Segment(NamedTuple):
    """Forms from ``begin`` on: each fitting row of block ``left`` with each of ``right``'s from ``low`` to ``high``."""

    begin: int
    operator: str
    left: int
    right: int
    low: int
    high: int


@dataclass
class Block:
    """The forms of one block of numbers: where its kinds end, and how they are made."""

    inverses: int = 0
    dividing: int = 0
    terms: int = 1
    factors: int = 0
    count: int = 1
    segments: list[Segment] = field(default_factory=list)


@cache
def make_plan(n: int, operators: str = OPERATORS) -> "Plan":
    """The plan for ``n`` numbers. Numerators and denominators stay below (2 * largest number) ** n."""
    return Plan(n, operators)


class Plan:
    """All forms of ``n`` numbers and of every block of them; block ``2**n - 1`` holds those of all numbers."""

    def __init__(self, n: int, operators: str) -> None:
        self.n, self.operators, self.full = n, operators, 2**n - 1
        self.blocks: list[Block] = [Block(count=0, terms=0)]
        for mask in range(1, 2**n):
            self.blocks.append(self._block(mask) if mask.bit_count() > 1 else Block())
        self.rows = sum(block.count for block in self.blocks)
        self.form = lru_cache(maxsize=100_000)(self._form)

    def _block(self, mask: int) -> Block:
        block, crossing = Block(), list(self._segments(mask, "crossing"))
        crossed = sum(size for size, _ in crossing)
        block.inverses, at = crossed, crossed
        kinds = [crossing, list(self._segments(mask, "plain")), list(self._segments(mask, "sum"))]
        ends = []
        for kind in kinds:
            for size, segment in kind:
                if size:
                    block.segments.append(segment._replace(begin=at))
                at += size
            ends.append(at)
        block.dividing, block.terms, block.count = ends
        block.factors = block.terms
        return block

    def _segments(self, mask: int, kind: str) -> Iterator[tuple[int, Segment]]:
        """Segments with their sizes; the left block holds the lowest number, so that each partition comes once."""
        for left, right in splits(mask):
            one, two = self.blocks[left], self.blocks[right]
            factors, terms = one.count - one.factors, one.terms
            if kind == "sum":
                for operator in "+-":
                    if operator in self.operators:
                        yield terms * two.count, Segment(0, operator, left, right, 0, two.count)
            elif kind == "plain" and "*" in self.operators:
                yield factors * (two.count - two.dividing), Segment(0, "*", left, right, two.dividing, two.count)
            elif kind == "crossing" and "/" in self.operators:
                low, high = two.inverses, two.dividing
                yield factors * (high - low), Segment(0, "*", left, right, low, high)
                yield factors * (two.count - low), Segment(0, "/", left, right, low, two.count)

    def evaluate(self, numbers: Array) -> list[Table]:
        """The tables of all blocks (the first is empty), for ``numbers`` of shape (n, problems)."""
        problems = numbers.shape[1]
        tables: list[Table] = []
        for mask, block in enumerate(self.blocks):
            shape = (block.count, problems)
            if mask.bit_count() == 1:
                yes = np.ones(shape, bool)
                tables.append(Table(numbers[mask.bit_length() - 1][None], np.ones(shape, numbers.dtype), yes, yes))
                continue
            table = Table(np.empty(shape, numbers.dtype), np.empty(shape, numbers.dtype), *np.empty((2, *shape), bool))
            self._fill(block, table, tables)
            if mask != self.full:
                _finish(block, table)
            tables.append(table)
        return tables

    def _fill(self, block: Block, table: Table, tables: list[Table]) -> None:
        for segment in block.segments:
            one, source = self.blocks[segment.left], tables[segment.left]
            left = source.rows(0, one.terms) if segment.operator in "+-" else source.rows(one.factors, one.count)
            right = tables[segment.right].rows(segment.low, segment.high)
            size = len(left.num) * len(right.num)
            _combine(segment.operator, left, right, table.rows(segment.begin, segment.begin + size))
        first, last = block.inverses, block.dividing
        table.num[:first], table.den[:first] = table.den[first:last], table.num[first:last]
        table.parts[:first] = table.parts[first:last]

    def _form(self, mask: int, row: int) -> Form:
        """The form at a row, as a tree over positions."""
        block = self.blocks[mask]
        if not block.segments:
            return mask.bit_length() - 1
        if row < block.inverses:
            inner = self.form(mask, row + block.inverses)
            return Node("*", tuple((-side, part) for side, part in inner.parts)) if isinstance(inner, Node) else inner
        at = bisect_right(block.segments, row, key=lambda segment: segment.begin) - 1
        segment = block.segments[at]
        left, right = divmod(row - segment.begin, segment.high - segment.low)
        start = 0 if segment.operator in "+-" else self.blocks[segment.left].factors
        kind, side = ("+" if segment.operator in "+-" else "*"), (1 if segment.operator in "+*" else -1)
        rest = self.form(segment.right, segment.low + right)
        parts = rest.parts if isinstance(rest, Node) and rest.kind == kind else ((1, rest),)
        first = (1, self.form(segment.left, start + left))
        return Node(kind, (first, *((side * its, part) for its, part in parts)))


def splits(mask: int) -> Iterator[tuple[int, int]]:
    """All ways to cut a block in two, the lowest number in the first part."""
    rest = mask & (mask - 1)
    part = rest
    while part:
        yield mask ^ part, part
        part = (part - 1) & rest


def _finish(block: Block, table: Table) -> None:
    """Which values are whole themselves, and which are undefined: needed where forms become parts of others."""
    products = table.rows(0, block.terms)
    nonzero = (products.num != 0) & (products.den != 0)
    np.logical_and(products.parts, nonzero, out=products.whole)
    over = table.rows(0, block.dividing)
    over.whole[:] &= _divides(over.num, np.where(over.den == 0, 1, over.den))
    sums = table.rows(block.terms, block.count)
    sums.num[sums.den == 0] = 0  # else dividing by what is undefined would give 0
    sums.whole[:] = sums.parts


def _divides(num: Array, den: Array) -> NDArray[np.bool_]:
    """Where ``num`` is a multiple of ``den``; a product of floats that is rounded is too large to equal ``num``."""
    found: NDArray[np.bool_] = num % den == 0 if num.dtype == object else np.rint(num / den) * den == num
    return found


def _combine(operator: str, left: Table, right: Table, out: Table) -> None:
    """Every row of ``left`` with every row of ``right``."""
    shape = (len(left.num), *right.num.shape)
    a, b, c, d = left.num[:, None], left.den[:, None], right.num[None], right.den[None]
    num, den, parts = out.num.reshape(shape), out.den.reshape(shape), out.parts.reshape(shape)
    if operator in "+-":
        np.multiply(a, d, out=num)
        (np.add if operator == "+" else np.subtract)(num, c * b, out=num)
        np.multiply(b, d, out=den)
        np.logical_and(left.whole[:, None], right.whole[None], out=parts)
    else:
        np.multiply(a, c if operator == "*" else d, out=num)
        np.multiply(b, d if operator == "*" else c, out=den)
        np.logical_and(left.parts[:, None], right.parts[None], out=parts)
