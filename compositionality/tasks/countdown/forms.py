"""Expressions up to commutativity and associativity: flat sums and products, written out, and told apart."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import prod
from operator import itemgetter
from typing import NamedTuple

from compositionality.tasks.countdown.prompts import Operation


class Node(NamedTuple):
    """A sum (kind "+") or a product ("*") of at least two parts; side -1 means subtracted, or divided by."""

    kind: str
    parts: "tuple[tuple[int, Form], ...]"


Form = int | Node
"""A whole number stands for a leaf: its position among the given numbers."""
Value = int | Fraction


class Written(NamedTuple):
    """A form with minus signs moved until no value in it is below zero; ``sign`` is what that took away.

    steps: one operation each, with only whole, positive values; empty if there is no such way.
    """

    value: Value
    sign: int
    text: str
    kind: str
    whole: bool
    steps: tuple[Operation, ...]


_SIDE: Callable[[tuple[int, Written]], int] = itemgetter(0)


def write(form: Form, numbers: Sequence[int]) -> Written:
    """A form over ``numbers`` in writing. ZeroDivisionError if it is undefined."""
    if isinstance(form, int):
        return Written(numbers[form], 1, str(numbers[form]), "", True, ())
    parts = [(side, write(part, numbers)) for side, part in form.parts]
    if form.kind == "*":
        sign = prod([part.sign for _, part in parts])
    else:
        total = sum([side * part.sign * part.value for side, part in parts])
        sign = 1 if total >= 0 else -1
        parts = [(side * part.sign * sign, part) for side, part in parts]
    parts.sort(key=_SIDE, reverse=True)  # stable: what is added or multiplied stays in order, before the rest
    return _join(form.kind, sign, parts)


def _join(kind: str, sign: int, parts: list[tuple[int, Written]]) -> Written:
    """The parts from left to right, with brackets around sums in products."""
    value, texts, steps = parts[0][1].value, [], [step for _, part in parts for step in part.steps]
    whole = False not in [part.whole for _, part in parts]
    for place, (side, part) in enumerate(parts):
        operator = ("+" if side > 0 else "-") if kind == "+" else ("*" if side > 0 else "/")
        text = f"({part.text})" if kind == "*" and part.kind == "+" else part.text
        texts.append(text if place == 0 else operator + text)
        if place:
            if whole:
                steps.append(Operation(int(value), operator, int(part.value)))
            value = _operate(value, operator, part.value)
            whole = whole and isinstance(value, int) and value > 0
    return Written(value, sign if value else 1, "".join(texts), kind, whole, tuple(steps) if whole else ())


def _operate(left: Value, operator: str, right: Value) -> Value:
    if operator == "+":
        value = left + right
    elif operator == "-":
        value = left - right
    else:
        value = left * right if operator == "*" else Fraction(left) / right
    return value.numerator if value.denominator == 1 else value


@lru_cache(maxsize=100_000)
def form_key(form: Form, labels: tuple[int, ...]) -> tuple[str, int]:
    """What all writings of a form share, and the sign that turns it into that one (0: either, for ``3-3``).

    ``labels`` stand for the numbers: equal numbers have equal labels, and cannot be told apart.
    """
    if isinstance(form, int):
        return str(labels[form]), 1
    parts = [(*form_key(part, labels), side) for side, part in form.parts]
    if form.kind == "*":
        words = sorted([("*" if side > 0 else "/") + key for key, _, side in parts])
        return f"[{''.join(words)}]", prod([sign for _, sign, _ in parts])
    signed = [(key, side * sign if sign else 2) for key, sign, side in parts]
    one = sorted([("-" if side < 0 else "+") + key for key, side in signed])
    other = sorted([("+" if side < 0 or side == 2 else "-") + key for key, side in signed])
    chosen = min(one, other)
    return f"({''.join(chosen)})", 0 if one == other else 1 if chosen == one else -1
