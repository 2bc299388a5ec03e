"""Shorter compositions with the same answer."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from compositionality.tasks.string.expression import from_chain, parse
from compositionality.tasks.string.functions import ATOMS, Operation, frozen_operation
from compositionality.tasks.string.irreducible import Walk, is_reducible

CHAINS = st.lists(st.sampled_from([frozen_operation(function) for function in ATOMS.values()]), max_size=6)


@settings(max_examples=200, deadline=None)
@given(CHAINS, st.text("abej", min_size=1, max_size=6))
def test_both_ways_find_what_trying_all_finds(steps: list[Operation], x: str) -> None:
    def run(some: tuple[Operation, ...]) -> str:
        text = x
        for operation in some:
            text = operation(text)
        return text

    answer = run(tuple(steps))
    reducible = answer in {run(some) for size in range(len(steps)) for some in combinations(steps, size)}
    walk: Walk | None = Walk(x)
    for operation in steps:
        walk = walk and walk.step(operation, 10_000)
    assert is_reducible(from_chain(tuple(steps[::-1])), x) == reducible
    empty = any(not run(tuple(steps[:end])) for end in range(len(steps)))
    assert (walk and walk.value) == (None if reducible or empty or not answer else answer)


def test_planted() -> None:
    assert is_reducible(parse("func_17(func_11(func_17(x), 1))"), "abc")  # shifted, however often it is reversed
    assert not is_reducible(parse("func_17(func_11(func_13(x, '-'), 1))"), "abc")
    assert is_reducible(parse("func_16((x + func_22(x)))"), "ab")  # half of a tree is enough
    assert not is_reducible(parse("(x + func_17(x))"), "ab")
