"""P2 and P3 for the clean mode; the streams: test_streams.py, gold and mutated gold: test_contract.py."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from task_options import STRING as ALL

from compositionality.errors import UserError
from compositionality.tasks.draws import SPLITS
from compositionality.tasks.string import clean
from compositionality.tasks.string.clean import StringGenerator, StringOptions, checksum, owned_checksum, owner
from compositionality.tasks.string.functions import ATOMS
from compositionality.tasks.string.program import (
    Call,
    Program,
    Walk,
    another_order,
    chain_of,
    frozen_call,
    is_reducible,
    join,
    parse,
    parse_program,
    steps_of,
)
from compositionality.tasks.string.task import TASK, fingerprint
from compositionality.types import Problem

PLAIN, TINY, TREES, HELDOUT = (ALL[name] for name in ("plain", "tiny", "trees", "heldout"))


@given(st.sampled_from(SPLITS), st.integers(0, 10**9), st.sampled_from(sorted(ALL)), st.integers(0, 10**6))
@settings(max_examples=60)
def test_p02_every_input_shows_whose_it_is(split: str, seed: int, name: str, index: int) -> None:
    item = StringGenerator(ALL[name]).item(split, seed, index)
    assert owner(item.input) == (split, seed % 8)
    assert checksum(item.input) == owned_checksum(split, seed)


@pytest.mark.parametrize("shape", ["chain", "tree"])
def test_p02_no_heldout_composition_behaves_like_a_trained_one(shape: str) -> None:
    def prints(functions: str) -> set[str]:
        task = StringGenerator(StringOptions(functions=functions, levels=(2,), shape=shape, frozen_parameters=True))
        rows = (parse_program(json.loads(task.problem("train", 1, i).ground_truth)["ref_code"]) for i in range(1500))
        return {fingerprint(row.value) for row in rows}

    assert not prints("trained") & prints("heldout")


@settings(max_examples=150)
@given(st.sampled_from(sorted(ALL)), st.integers(0, 10**6), st.sampled_from(SPLITS), st.integers(0, 100))
def test_p03_depth_is_real(name: str, index: int, split: str, seed: int) -> None:
    options = ALL[name]
    task = StringGenerator(options)
    item = task.item(split, seed, index)
    assert item.program.depth == item.level
    for number, applied in enumerate(item.program.apply(item.input)):
        assert part(item.program, number).uses_input
        assert applied.value not in applied.strings
        assert 1 <= len(applied.value) <= options.max_length
    assert item.program.value(item.input) == item.output != item.input
    assert any(item.program.value(other) != item.output for other in ("b", "Zoa2", "ktbdgqmwe7"))


@settings(max_examples=60)
@given(st.sampled_from(["plain", "tiny", "heldout", "deep"]), st.integers(0, 10**6), st.sampled_from(SPLITS))
def test_p03_no_shorter_subsequence_gives_the_answer(name: str, index: int, split: str) -> None:
    item = StringGenerator(ALL[name]).item(split, 5, index)
    fewer = [steps for size in range(item.level) for steps in combinations(steps_of(item.program), size)]
    assert item.output not in {chain_of(steps).value(item.input) for steps in fewer}


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_p03_no_tree_with_an_operator_less_gives_the_answer(index: int) -> None:
    item = StringGenerator(TREES).item("train", 5, index)
    assert all(shorter.value(item.input) != item.output for shorter in with_one_less(item.program))


def part(program: Program, source: int | str) -> Program:
    """The part of a program that gives one of its strings."""
    if isinstance(source, str) or source < 0:
        return Program(result=source)
    call = program.calls[source]
    return join(call.function, [part(program, one) for one in call.sources], call.parameter)


def with_one_less(program: Program) -> Iterator[Program]:
    if program.calls:
        call = program.calls[-1]
        arguments = [part(program, source) for source in call.sources]
        yield from (argument for argument in arguments if argument.uses_input)
        for i, argument in enumerate(arguments):
            for shorter in with_one_less(argument):
                yield join(call.function, [*arguments[:i], shorter, *arguments[i + 1 :]], call.parameter)


@pytest.mark.parametrize(("functions", "split"), [("trained", 0), ("heldout", 0), ("trained", 87), ("heldout", 61)])
def test_every_division_of_the_functions_reaches_level_8(functions: str, split: int) -> None:
    """Of division 87 one chain of eight trained functions in 130 is sound within ten characters."""
    options = replace(TINY, functions=functions, function_split=split, levels=(8,), alphabet="abcdefghij")
    assert len(list(TASK.problems(options, "test", 2027, 4))) == 4


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["trained", "heldout"]))
def test_p03_no_other_order_gives_the_answer_of_an_order_sensitive_problem(index: int, functions: str) -> None:
    options = replace(TINY, functions=functions, levels=(2, 3, 4, 5), order_sensitive=True)
    item = StringGenerator(options).item("test", 5, index)
    steps = steps_of(item.program)
    orders = {order for order in permutations(steps) if order != steps}
    assert all(chain_of(order).value(item.input) != item.output for order in orders)


def test_rows() -> None:
    problem = StringGenerator(TINY).problem("train", 1, 1)
    truth = json.loads(problem.ground_truth)
    assert problem.data_source == "string-trained-level2"
    assert truth["style"] == "compact"
    assert list(problem.metadata) == ["seed", "functions"]
    assert problem.prompt == "".join(problem.metadata["functions"]) + ":" + truth["ref_input"]["x"]
    assert StringGenerator(HELDOUT).problem("test", 1, 0).data_source == "string-heldout-level1"
    ordered = StringGenerator(replace(HELDOUT, levels=(2, 3), order_sensitive=True)).problem("test", 5, 0)
    assert (ordered.group, ordered.data_source) == ("heldout-ordered", "string-heldout-level2")


def test_compact_definitions_and_parameters() -> None:
    task = StringGenerator(replace(TINY, show_definitions=True, levels=(1,)))
    assert any(p.prompt.startswith("func_17=recursive_reverse;func_17:") for p in some(task))
    free = StringGenerator(replace(TINY, frozen_parameters=False, levels=(1,)))
    assert any(p.prompt.startswith("func_13[-]:") for p in some(free))


def test_the_sides_of_a_random_split_are_the_groups() -> None:
    for name in ("trained", "heldout"):
        task = StringGenerator(replace(TINY, functions=name, function_split=1))
        assert {problem.group for problem in some(task)} == {name}
        assert {function.id for function in task.functions} != {
            function.id for function in StringGenerator(replace(TINY, functions=name)).functions
        }


def some(task: StringGenerator) -> list[Problem]:
    return [task.problem("train", 1, index) for index in range(100)]


def test_functions_are_balanced() -> None:
    task = StringGenerator(replace(PLAIN, levels=(1,)))
    names = [task.problem("train", 1, index).metadata["functions"][0] for index in range(2400)]
    counts = [names.count(name) for name in set(names)]
    assert len(counts) == 12
    assert min(counts) > 150
    assert max(counts) < 260


def test_p03_a_chain_of_no_ops_is_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean, "MAX_CHAINS_PER_PROBLEM", 50)
    with pytest.raises(UserError, match="no sound problem of level 2"):
        StringGenerator(StringOptions(ids=(22,), levels=(2,))).problem("train", 1, 0)


def test_a_level_with_too_few_problems_is_said() -> None:
    task = StringGenerator(StringOptions(ids=(17,), alphabet="abcdefgh", input_length=(3, 3)))
    with pytest.raises(UserError, match="level 1 has only"):
        list(TASK.problems(task.options, "train", 1, 500))


# ---- shorter compositions, and other orders, with the same answer

CHAINS = st.lists(st.sampled_from([*map(frozen_call, ATOMS.values())]), max_size=6).map(tuple)


@settings(max_examples=200)
@given(CHAINS, st.text("abej", min_size=1, max_size=6))
def test_both_ways_find_what_trying_all_finds(steps: tuple[Call, ...], x: str) -> None:
    answer = chain_of(steps).value(x)
    reducible = answer in {chain_of(some).value(x) for size in range(len(steps)) for some in combinations(steps, size)}
    walk: Walk | None = Walk(x, x)
    for call in steps:
        walk = walk and walk.step(call, 10_000)
    assert is_reducible(parse(chain_of(steps).text), x) == reducible
    empty = any(not chain_of(steps[:end]).value(x) for end in range(len(steps)))
    assert (walk and walk.value) == (None if reducible or empty or not answer else answer)


def test_planted() -> None:
    assert is_reducible(parse("func_17(func_11(func_17(x), 1))"), "abc")  # shifted, however often it is reversed
    assert not is_reducible(parse("func_17(func_11(func_13(x, '-'), 1))"), "abc")
    assert is_reducible(parse("func_16((x + func_22(x)))"), "ab")  # half of a tree is enough
    assert not is_reducible(parse("(x + func_17(x))"), "ab")


@settings(max_examples=100)
@given(CHAINS, st.text("abej", min_size=1, max_size=6))
def test_other_orders_are_found(steps: tuple[Call, ...], x: str) -> None:
    answer = chain_of(steps).value(x)
    others = {chain_of(order).value(x) for order in permutations(steps) if order != steps}
    assert another_order(steps, x, answer) == (answer in others)


def test_of_a_long_chain_two_functions_are_exchanged() -> None:
    steps = steps_of(parse("func_11(" * 6 + "func_17(x)" + ", 1)" * 6))
    assert another_order(steps, "abc", "ihg")


def test_a_chain_is_functions_on_the_input() -> None:
    steps = steps_of(parse("func_17(func_20(x, 'jd'))"))
    assert [(step.function.id, step("ab")) for step in steps] == [(20, "ajbd"), (17, "ba")]
    for text in ("(x + x)", "func_20(x, x)", "func_17('abc')", "(x).upper()", "func_20('ab', x)"):
        assert steps_of(parse(text)) is None
