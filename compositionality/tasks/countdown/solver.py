"""The exact solver: all solutions of a Countdown problem of up to 6 numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compositionality.errors import UserError
from compositionality.tasks.countdown.forms import form_key, write
from compositionality.tasks.countdown.options import EXACT, LEVELS, OPERATOR_SETS
from compositionality.tasks.countdown.plan import Plan, Table, make_plan
from compositionality.tasks.countdown.prompts import OPERATORS, Operation


@dataclass(frozen=True, slots=True)
class Solution:
    """One solution: an expression, its number of operations, and its steps if they are whole and positive."""

    expression: str
    operations: int
    whole: bool
    steps: tuple[Operation, ...]


def solve(numbers: Sequence[int], target: int, operators: str = OPERATORS, use: str = "all") -> list[Solution]:
    """All solutions that differ by more than order, brackets and moved minus signs; those with few operations first.

    Equal numbers cannot be told apart. ``use``: "all" numbers or "any" of them. UserError if the problem is none.
    """
    check_problem(numbers, target, operators, use)
    ordered = sorted(numbers)
    plan = make_plan(len(ordered), operators)
    exact = (2 * ordered[-1]) ** len(ordered) < EXACT
    tables = plan.evaluate(np.array(ordered, dtype=np.float64 if exact else object)[:, None])
    labels = labels_of(ordered)
    found: dict[str, Solution] = {}
    for mask in allowed_blocks(plan, use):
        for row in _hits(tables[mask], target):
            form = plan.form(mask, int(row))
            key = form_key(form, labels)[0]
            if key not in found:
                written = write(form, ordered)
                found[key] = Solution(written.text, mask.bit_count() - 1, written.whole, written.steps)
    return list(found.values())


def check_problem(numbers: Sequence[int], target: int, operators: str, use: str) -> None:
    """UserError, in one line, for what cannot be solved because it is no problem."""
    if not 1 <= len(numbers) <= LEVELS[-1]:
        raise UserError(f"{len(numbers)} numbers: the solver takes 1 to {LEVELS[-1]}")
    if not all(type(value) is int and value >= 1 for value in (*numbers, target)):
        raise UserError(f"numbers {list(numbers)}, target {target}: give positive whole numbers")
    if operators not in OPERATOR_SETS or use not in ("all", "any"):
        raise UserError(f"operators={operators} use={use}: operators from {' '.join(OPERATOR_SETS)}, use all or any")


def allowed_blocks(plan: Plan, use: str) -> list[int]:
    """The blocks whose forms may be solutions, small ones first."""
    return [plan.full] if use == "all" else sorted(range(1, plan.full + 1), key=lambda mask: (mask.bit_count(), mask))


def labels_of(ordered: Sequence[int]) -> tuple[int, ...]:
    """For each of the ordered numbers, the position of the first that equals it."""
    return tuple([ordered.index(value) for value in ordered])


def _hits(table: Table, target: int) -> NDArray[np.int64]:
    """The forms of one problem whose value is ``target``, up to their sign."""
    num, den = table.num[:, 0], table.den[:, 0]
    return np.flatnonzero((np.abs(num) == target * np.abs(den)) & (num != 0))
