"""Shorter compositions, and other orders, with the same answer."""

from itertools import combinations, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from compositionality.tasks.string.functions import ATOMS, Operation, frozen_operation
from compositionality.tasks.string.program import Walk, another_order, as_chain, is_reducible, parse, program_of

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
    walk: Walk | None = Walk(x, x)
    for operation in steps:
        walk = walk and walk.step(operation, 10_000)
    assert is_reducible(parse(program_of(tuple(steps[::-1])).text), x) == reducible
    empty = any(not run(tuple(steps[:end])) for end in range(len(steps)))
    assert (walk and walk.value) == (None if reducible or empty or not answer else answer)


def test_planted() -> None:
    assert is_reducible(parse("func_17(func_11(func_17(x), 1))"), "abc")  # shifted, however often it is reversed
    assert not is_reducible(parse("func_17(func_11(func_13(x, '-'), 1))"), "abc")
    assert is_reducible(parse("func_16((x + func_22(x)))"), "ab")  # half of a tree is enough
    assert not is_reducible(parse("(x + func_17(x))"), "ab")


@settings(max_examples=100, deadline=None)
@given(CHAINS, st.text("abej", min_size=1, max_size=6))
def test_other_orders_are_found(steps: list[Operation], x: str) -> None:
    def run(some: tuple[Operation, ...]) -> str:
        text = x
        for operation in some:
            text = operation(text)
        return text

    chain = tuple(steps)
    others = {run(order) for order in permutations(chain) if order != chain}
    assert another_order(chain, x, run(chain)) == (run(chain) in others)


def test_of_a_long_chain_two_functions_are_exchanged() -> None:
    chain = as_chain(parse("func_11(" * 6 + "func_17(x)" + ", 1)" * 6))
    assert chain is not None
    assert another_order(chain, "abc", "ihg")


def test_a_chain_is_functions_on_the_input() -> None:
    chain = as_chain(parse("func_17(func_20(x, 'jd'))"))
    assert chain is not None
    assert [(step.function.id, step.parameter) for step in chain] == [(20, "jd"), (17, None)]
    for text in ("(x + x)", "func_20(x, x)", "func_17('abc')", "(x).upper()", "func_20('ab', x)"):
        assert as_chain(parse(text)) is None
