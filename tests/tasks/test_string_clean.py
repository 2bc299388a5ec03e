"""P2 and P3 for the clean mode; the streams: test_streams.py, gold and mutated gold: test_contract.py."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from task_options import STRING as ALL

from compositionality.errors import UserError
from compositionality.tasks.draws import SPLITS
from compositionality.tasks.string import TASK
from compositionality.tasks.string.clean import StringGenerator, StringOptions, checksum, owned_checksum, owner
from compositionality.tasks.string.facts import fingerprint
from compositionality.tasks.string.functions import ATOMS, Operation
from compositionality.tasks.string.prior import PRIOR
from compositionality.tasks.string.program import Program, join, parse_program
from compositionality.types import Problem

PLAIN, TINY, TREES, HELDOUT = (ALL[name] for name in ("plain", "tiny", "trees", "heldout"))


@given(st.sampled_from(SPLITS), st.integers(0, 10**9), st.sampled_from(sorted(ALL)), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
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


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(ALL)), st.integers(0, 10**6), st.sampled_from(SPLITS), st.integers(0, 100))
def test_p03_depth_is_real(name: str, index: int, split: str, seed: int) -> None:
    options = ALL[name]
    task = StringGenerator(options)
    item = task.item(split, seed, index)
    assert item.program.depth == item.level
    for number, applied in enumerate(item.program.apply(item.input)):
        assert part(item.program, number).uses_input
        assert applied.value not in applied.given
        assert 1 <= len(applied.value) <= options.max_length
    assert item.program.value(item.input) == item.output != item.input
    assert any(item.program.value(other) != item.output for other in ("b", "Zoa2", "ktbdgqmwe7"))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["plain", "tiny", "heldout", "deep"]), st.integers(0, 10**6), st.sampled_from(SPLITS))
def test_p03_no_shorter_subsequence_gives_the_answer(name: str, index: int, split: str) -> None:
    item = StringGenerator(ALL[name]).item(split, 5, index)
    shorter = {run(steps, item.input) for size in range(item.level) for steps in combinations(item.chain[::-1], size)}
    assert item.output == run(item.chain[::-1], item.input)
    assert item.output not in shorter


def run(steps: Iterable[Operation], text: str) -> str:
    for operation in steps:
        text = operation(text)
    return text


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_p03_no_tree_with_an_operator_less_gives_the_answer(index: int) -> None:
    item = StringGenerator(TREES).item("train", 5, index)
    assert all(shorter.value(item.input) != item.output for shorter in with_one_less(item.program))


def part(program: Program, source: int | str) -> Program:
    """The part of a program that gives one of its strings."""
    if isinstance(source, str) or source < 0:
        return Program(result=source)
    call = program.calls[source]
    return join(call.operator, [part(program, one) for one in call.sources], call.parameter)


def with_one_less(program: Program) -> Iterator[Program]:
    if program.calls:
        call = program.calls[-1]
        arguments = [part(program, source) for source in call.sources]
        yield from (argument for argument in arguments if argument.uses_input)
        for i, argument in enumerate(arguments):
            for shorter in with_one_less(argument):
                yield join(call.operator, [*arguments[:i], shorter, *arguments[i + 1 :]], call.parameter)


@pytest.mark.parametrize("split", [0, 1, 61])
@pytest.mark.parametrize("functions", ["trained", "heldout"])
def test_the_tiny_profile_reaches_level_8(functions: str, split: int) -> None:
    options = replace(TINY, functions=functions, function_split=split, levels=(8,), alphabet="abcdefghij")
    assert len(list(TASK.problems(options, "test", 2027, 20))) == 20


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["trained", "heldout"]))
def test_p03_no_other_order_gives_the_answer_of_an_order_sensitive_problem(index: int, functions: str) -> None:
    options = replace(TINY, functions=functions, levels=(2, 3, 4, 5), order_sensitive=True)
    item = StringGenerator(options).item("test", 5, index)
    orders = {order for order in permutations(item.chain) if order != item.chain}
    assert all(run(order[::-1], item.input) != item.output for order in orders)


def test_order_sensitive_problems_are_a_group_of_their_own() -> None:
    options = replace(TINY, functions="heldout", levels=(2, 3), order_sensitive=True)
    problem = StringGenerator(options).problem("test", 5, 0)
    assert (problem.group, problem.data_source) == ("heldout-ordered", "string-heldout-level2")


def test_rows() -> None:
    problem = StringGenerator(TINY).problem("train", 1, 1)
    truth = json.loads(problem.ground_truth)
    assert problem.data_source == "string-trained-level2"
    assert truth["style"] == "compact"
    assert list(problem.metadata) == ["seed", "functions"]
    assert problem.prompt == "".join(problem.metadata["functions"]) + ":" + truth["ref_input"]["x"]
    assert StringGenerator(HELDOUT).problem("test", 1, 0).data_source == "string-heldout-level1"


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


def test_prior_functions_can_be_used() -> None:
    task = StringGenerator(TINY, tuple(PRIOR.values()))
    assert task.problem("pretrain", 1, 1).data_source == "string-prior-level2"


def test_functions_are_balanced() -> None:
    task = StringGenerator(replace(PLAIN, levels=(1,)))
    names = [task.problem("train", 1, index).metadata["functions"][0] for index in range(2400)]
    counts = [names.count(name) for name in set(names)]
    assert len(counts) == 12
    assert min(counts) > 150
    assert max(counts) < 260


def test_p03_a_chain_of_no_ops_is_never_made() -> None:
    with pytest.raises(UserError, match="no sound problem of level 2"):
        StringGenerator(StringOptions(ids=(22,), levels=(2,))).problem("train", 1, 0)


def test_every_division_of_the_functions_has_deep_problems() -> None:
    """Of division 87 one chain of eight trained functions in 130 is sound within ten characters."""
    options = replace(TINY, style="compact", levels=(8,), function_split=87, drop=(0, 3), alphabet="abcdefghij")
    task = StringGenerator(replace(options, input_length=(3, 6), max_length=10, frozen_parameters=True))
    problems = [task.problem("test", 2032, index) for index in range(6)]
    assert all(len(problem.metadata["functions"]) == 8 for problem in problems)


def test_a_level_with_too_few_problems_is_said() -> None:
    task = StringGenerator(StringOptions(ids=(17,), alphabet="abcdefgh", input_length=(3, 3)))
    with pytest.raises(UserError, match="level 1 has only"):
        list(TASK.problems(task.options, "train", 1, 500))


def test_operation_is_what_the_chain_says() -> None:
    item = StringGenerator(PLAIN).item("train", 1, 2)
    text = item.input
    for operation in reversed(item.chain):
        assert isinstance(operation, Operation)
        text = ATOMS[operation.function.id].run(*[text, operation.parameter][: 1 + operation.function.parametrised])
    assert text == item.output
