"""The exact solver against brute force: every binary tree with Fractions, told apart by values at random points."""

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compositionality.errors import UserError
from compositionality.tasks.countdown.clean import whole_values
from compositionality.tasks.countdown.solve import OPERATOR_SETS, make_plan, solve
from compositionality.tasks.countdown.wording import compact_trace, ground_truth, judge_countdown, text_answer
from compositionality.types import Reason

PRIME = 2**127 - 1


class Part(NamedTuple):
    """An expression: its value; what it would be at other points modulo a prime; whether all on its way is whole."""

    value: Fraction
    elsewhere: tuple[int, ...]
    whole: bool


def leaves(numbers: list[int]) -> list[Part]:
    """Random points, once for every way to swap equal numbers: swapped expressions see the same points."""
    draws = random.Random(5)
    points = [draws.randrange(PRIME) for _ in numbers]
    places = range(len(numbers))
    swaps = [order for order in permutations(places) if all(numbers[i] == numbers[j] for i, j in enumerate(order))]
    return [Part(Fraction(numbers[i]), tuple(points[order[i]] for order in swaps), True) for i in places]


def joined(one: Part, two: Part, operator: str) -> Part | None:
    if operator == "/" and (two.value == 0 or 0 in two.elsewhere):
        return None
    act = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b if isinstance(a, Fraction) else a * pow(b, -1, PRIME),
    }[operator]
    value = act(one.value, two.value)
    elsewhere = tuple(act(a, b) % PRIME for a, b in zip(one.elsewhere, two.elsewhere, strict=True))
    return Part(value, elsewhere, one.whole and two.whole and value > 0 and value.denominator == 1)


def trees(parts: list[Part], operators: str) -> Iterator[Part]:
    if len(parts) == 1:
        yield parts[0]
        return
    for i, j in combinations(range(len(parts)), 2):
        rest = [part for k, part in enumerate(parts) if k not in (i, j)]
        for operator in operators:
            for one, two in [(i, j)] if operator in "+*" else [(i, j), (j, i)]:
                made = joined(parts[one], parts[two], operator)
                if made is not None:
                    yield from trees([*rest, made], operators)


def brute_force(numbers: list[int], target: int, operators: str, use: str) -> dict[frozenset[int], tuple[int, bool]]:
    """For each distinct solution its number of operations and whether it can be done in whole steps."""
    found: dict[frozenset[int], tuple[int, bool]] = {}
    every = leaves(numbers)
    for size in range(1 if use == "any" else len(numbers), len(numbers) + 1):
        for some in combinations(every, size):
            for tree in trees(list(some), operators):
                if tree.value == target:
                    key = frozenset(tree.elsewhere)
                    found[key] = size - 1, tree.whole or found.get(key, (0, False))[1]
    return found


@settings(max_examples=200)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    st.integers(1, 40),
    st.sampled_from(OPERATOR_SETS),
    st.sampled_from(["all", "any"]),
)
def test_all_solutions_and_no_others(numbers: list[int], target: int, operators: str, use: str) -> None:
    expected = brute_force(numbers, target, operators, use)
    found = solve(numbers, target, operators, use)
    assert sorted((one.operations, one.whole) for one in found) == sorted(expected.values())
    truth = ground_truth(numbers, target, "text", use, operators)
    for one in found:
        assert judge_countdown(text_answer(one.expression), truth).reason == Reason.CORRECT, one
        if one.whole and one.operations:
            steps = ground_truth(numbers, target, "compact", use, operators)
            assert judge_countdown(compact_trace(numbers, one.steps), steps).reason == Reason.CORRECT, one
    assert len({one.expression for one in found}) == len(found)


@pytest.mark.parametrize(("n", "count"), [(1, 1), (2, 6), (3, 68), (4, 1170), (5, 27142)])
def test_the_plan_holds_every_expression_once(n: int, count: int) -> None:
    """A140606 of the OEIS; the plan lets one form stand for itself and its negative, which has none without a minus."""
    points = np.array([[10**9 + 7 * 31**k] for k in range(n)], dtype=object)
    with_minus, without = make_plan(n), make_plan(n, "+*/")
    table = with_minus.evaluate(points)[with_minus.full]
    values = {abs(Fraction(*pair)) for pair in zip(table.num[:, 0], table.den[:, 0], strict=True)}
    assert len(values) == len(table.num)
    assert 2 * len(values) - without.blocks[without.full].count == count


def test_numbers_too_large_for_64_bits_are_exact() -> None:
    large = [10**18 + 9, 10**18 + 7, 3]
    (one,) = solve(large, 10**36 + 16 * 10**18 + 66)
    assert one.expression == "3+1000000000000000007*1000000000000000009"


def test_whole_values_are_exact_up_to_the_bound() -> None:
    plan = make_plan(2)
    numbers = np.array([[31_622, 99_991], [31_622, 99_991]], dtype=np.float64)
    assert whole_values(plan.evaluate(numbers)[plan.full]).max(axis=0).tolist() == [31_622**2, 99_991**2]


@pytest.mark.parametrize(
    ("numbers", "target"),
    [([], 5), ([1] * 7, 5), ([0, 3], 3), ([-2, 3], 3), ([1.5, 3], 3), ([True, 3], 3), ([2, 3], 0), (["2", 3], 5)],
)
def test_what_is_no_problem_is_refused_in_one_line(numbers: list[int], target: int) -> None:
    with pytest.raises(UserError):
        solve(numbers, target)
    for rules in ({"operators": "-"}, {"operators": "+^"}, {"use": "some"}):
        with pytest.raises(UserError):
            solve([1, 2], 3, **rules)
