"""The exact solver: all solutions of Countdown problems of up to 6 numbers, each once up to commutativity and
associativity, for many problems at once.

An expression is a sum of signed terms or a product of factors and divisors; terms are numbers or products, factors are
numbers or sums. Forms that differ by a sign stand for one another: with positive numbers and a positive target just one
of them can be right. A product that divides is stored with its inverse. Blocks of numbers are bit masks; the forms of a
block are the rows of one table, ordered so that every use needs one slice:

    [ inverses | dividing products | plain products | sums ]      a single number is both a term and a factor
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compositionality.errors import UserError
from compositionality.tasks.arithmetic import WHOLE
from compositionality.tasks.countdown.wording import OPERATORS, Calculation

LEVELS = range(2, 7)  # how many numbers a problem gives
# A minus comes with a plus and a division with a product: a-(b-c) is a sum in disguise.
OPERATOR_SETS = ("+", "*", "+-", "*/", "+*", "+-*", "+*/", "+-*/")
EXACT = 2**53  # whole numbers below it are exact as float64
Array = NDArray[Any]
"""Whole numbers as float64, exact below ``EXACT``; Python's own (dtype object) where that is too little."""


def solve(numbers: Sequence[int], target: int, operators: str = OPERATORS, use: str = "all") -> list["Written"]:
    """Return all solutions that differ by more than order, brackets and moved minus signs, few operations first.

    Equal numbers cannot be told apart. ``use``: "all" numbers or "any" of them. UserError if the problem is none.
    """
    if not 1 <= len(numbers) <= LEVELS[-1]:
        raise UserError(f"{len(numbers)} numbers: the solver takes 1 to {LEVELS[-1]}")
    if not all(type(value) is int and value >= 1 for value in (*numbers, target)):
        raise UserError(f"numbers {list(numbers)}, target {target}: give positive whole numbers")
    if operators not in OPERATOR_SETS or use not in ("all", "any"):
        raise UserError(f"operators={operators} use={use}: operators from {' '.join(OPERATOR_SETS)}, use all or any")
    ordered = sorted(numbers)
    plan = make_plan(len(ordered), operators)
    exact = (2 * ordered[-1]) ** len(ordered) < EXACT
    tables = plan.evaluate(np.array(ordered, dtype=np.float64 if exact else object)[:, None])
    labels = labels_of(ordered)
    solutions: dict[str, Written] = {}
    for mask in allowed_blocks(plan, use):
        num, den = tables[mask].num[:, 0], tables[mask].den[:, 0]
        for row in np.flatnonzero((np.abs(num) == target * np.abs(den)) & (num != 0)):  # the target, up to its sign
            form = plan.form(mask, int(row))
            key = form_key(form, labels)[0]
            if key not in solutions:
                solutions[key] = write(form, ordered)
    return list(solutions.values())


def allowed_blocks(plan: "Plan", use: str) -> list[int]:
    """Return the blocks whose forms may be solutions, small ones first."""
    return [plan.full] if use == "all" else sorted(range(1, plan.full + 1), key=lambda mask: (mask.bit_count(), mask))


def labels_of(ordered: Sequence[int]) -> tuple[int, ...]:
    """Return for each of the ordered numbers the position of the first that equals it."""
    return tuple([ordered.index(value) for value in ordered])


# ---- forms: expressions up to commutativity and associativity


class Node(NamedTuple):
    """A sum (kind "+") or a product ("*") of at least two parts; side -1 means subtracted, or divided by."""

    kind: str
    parts: "tuple[tuple[int, Form], ...]"


Form = int | Node  # a whole number stands for a leaf: its position among the given numbers
Value = int | Fraction


class Written(NamedTuple):
    """A form with minus signs moved until no value in it is below zero; ``sign`` is what that took away.

    steps: one operation each, with only whole, positive values; empty if there is no such way.
    """

    expression: str
    value: Value
    sign: int = 1
    kind: str = ""
    operations: int = 0
    whole: bool = True
    steps: tuple[Calculation, ...] = ()


def write(form: Form, numbers: Sequence[int]) -> Written:
    """Return a form over ``numbers`` in writing, with brackets around sums in products.

    ZeroDivisionError if it is undefined.
    """
    if isinstance(form, int):
        return Written(str(numbers[form]), numbers[form])
    parts = [(side, write(part, numbers)) for side, part in form.parts]
    if form.kind == "*":
        sign = prod([part.sign for _, part in parts])
    else:
        total = sum([side * part.sign * part.value for side, part in parts])
        sign = 1 if total >= 0 else -1
        parts = [(side * part.sign * sign, part) for side, part in parts]
    parts.sort(key=lambda pair: pair[0], reverse=True)  # what is added or multiplied first, in its order
    value = parts[0][1].value
    texts: list[str] = []
    steps = [step for _, part in parts for step in part.steps]
    whole = False not in [part.whole for _, part in parts]
    for place, (side, part) in enumerate(parts):
        operator = ("+" if side > 0 else "-") if form.kind == "+" else ("*" if side > 0 else "/")
        text = f"({part.expression})" if form.kind == "*" and part.kind == "+" else part.expression
        texts.append(text if place == 0 else operator + text)
        if place:
            if whole:
                steps.append(Calculation(int(value), operator, int(part.value)))
            value = Fraction(value) / part.value if operator == "/" else WHOLE[operator](value, part.value)
            value = value.numerator if value.denominator == 1 else value
            whole = whole and isinstance(value, int) and value > 0
    operations = len(parts) - 1 + sum([part.operations for _, part in parts])
    sign = sign if value else 1
    return Written("".join(texts), value, sign, form.kind, operations, whole, tuple(steps) if whole else ())


@lru_cache(maxsize=100_000)
def form_key(form: Form, labels: tuple[int, ...]) -> tuple[str, int]:
    """Return what all writings of a form share, and the sign that turns it into that one (0: either, for ``3-3``).

    ``labels`` stand for the numbers: equal numbers have equal labels, and cannot be told apart.
    """
    if isinstance(form, int):
        return str(labels[form]), 1
    parts = [(*form_key(part, labels), side) for side, part in form.parts]
    if form.kind == "*":
        words = sorted([("*" if side > 0 else "/") + key for key, _, side in parts])
        return f"[{''.join(words)}]", prod([sign for _, sign, _ in parts])
    signed = [(key, side * sign if sign else 2) for key, sign, side in parts]
    plus = sorted([("-" if side < 0 else "+") + key for key, side in signed])
    minus = sorted([("+" if side < 0 or side == 2 else "-") + key for key, side in signed])
    chosen = min(plus, minus)
    return f"({''.join(chosen)})", 0 if plus == minus else 1 if chosen == plus else -1


# ---- plans: the values of all forms, in tables


class Table(NamedTuple):
    """Values of the forms of one block: ``num / den``, shapes (forms, problems); undefined is 0/0 or n/0.

    parts: every value below the form can be made whole and positive; whole: and so can its own.
    """

    num: Array
    den: Array
    parts: NDArray[np.bool_]
    whole: NDArray[np.bool_]

    def rows(self, begin: int, end: int) -> "Table":
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
    """Return the plan for ``n`` numbers. Numerators and denominators stay below (2 * largest number) ** n."""
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
        block = Block()
        block.inverses = at = sum(size for size, _ in self._segments(mask, "crossing"))
        ends = []
        for kind in ("crossing", "plain", "sum"):
            for size, segment in self._segments(mask, kind):
                if size:
                    block.segments.append(segment._replace(begin=at))
                at += size
            ends.append(at)
        block.dividing, block.terms, block.count = ends
        block.factors = block.terms
        return block

    def _segments(self, mask: int, kind: str) -> Iterator[tuple[int, Segment]]:
        """Yield segments and their sizes; the left block holds the lowest number, so that each partition comes once."""
        for left, right in splits(mask):
            one = self.blocks[left]
            two = self.blocks[right]
            factors = one.count - one.factors
            if kind == "sum":
                for operator in "+-":
                    if operator in self.operators:
                        yield one.terms * two.count, Segment(0, operator, left, right, 0, two.count)
            elif kind == "plain" and "*" in self.operators:
                yield factors * (two.count - two.dividing), Segment(0, "*", left, right, two.dividing, two.count)
            elif kind == "crossing" and "/" in self.operators:
                low = two.inverses
                yield factors * (two.dividing - low), Segment(0, "*", left, right, low, two.dividing)
                yield factors * (two.count - low), Segment(0, "/", left, right, low, two.count)

    def evaluate(self, numbers: Array) -> list[Table]:
        """Return the tables of all blocks (the first is empty), for ``numbers`` of shape (n, problems)."""
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
        """Return the form at a row, as a tree over positions."""
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
        return Node(kind, (first, *((side * inner, part) for inner, part in parts)))


def splits(mask: int) -> Iterator[tuple[int, int]]:
    """Yield all ways to cut a block in two, the lowest number in the first part."""
    rest = mask & (mask - 1)
    part = rest
    while part:
        yield mask ^ part, part
        part = (part - 1) & rest


def _finish(block: Block, table: Table) -> None:
    """Mark which values are whole themselves and which are undefined: needed where forms become parts of others."""
    products = table.rows(0, block.terms)
    nonzero = (products.num != 0) & (products.den != 0)
    np.logical_and(products.parts, nonzero, out=products.whole)
    over = table.rows(0, block.dividing)
    num, den = over.num, np.where(over.den == 0, 1, over.den)
    # a product of floats that is rounded is too large to equal ``num``
    over.whole[:] &= num % den == 0 if num.dtype == object else np.rint(num / den) * den == num
    sums = table.rows(block.terms, block.count)
    sums.num[sums.den == 0] = 0  # else dividing by what is undefined would give 0
    sums.whole[:] = sums.parts


def _combine(operator: str, left: Table, right: Table, out: Table) -> None:
    """Combine every row of ``left`` with every row of ``right``."""
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
