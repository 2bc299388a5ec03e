"""iGSM: the law of its problems, texts that say all that is needed, solutions without a wrong value."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from igsm_reader import nouns_of, read_prompt

from compositionality.errors import UserError
from compositionality.tasks.arithmetic import parse, value_of
from compositionality.tasks.draws import Draws
from compositionality.tasks.igsm import generate
from compositionality.tasks.igsm.draw import MAX_PARENTS
from compositionality.tasks.igsm.generate import (
    BINS,
    KNOWN_SHARES,
    N_BINS,
    IgsmItem,
    IgsmOptions,
    answer_shares,
    level_at,
    measure_shares,
)
from compositionality.tasks.igsm.graph import Quantity, QuantityGraph
from compositionality.tasks.igsm.solution import plan_steps
from compositionality.tasks.igsm.task import TASK, graph_in
from compositionality.tasks.igsm.wording import BUILT_IN, compact_prompt, read_systems, text_prompt
from compositionality.tasks.task import ANALYSIS_LEVELS, BRIDGE, PLAIN, Behaviours

SIZES = {
    "paper": IgsmOptions(law="min-of-two", most_common=1),
    "iGSM": IgsmOptions(levels=(15, 20), modulus=23, most_common=0.12),
    "harder": IgsmOptions(levels=(21, 23, 25), most_common=1),
    "tiny": IgsmOptions(levels=(2, 3, 4, 5), modulus=10, most_edges=8, most_common=0.25, style="compact"),
    "unmixed": IgsmOptions(levels=(8,), redundant=False, shuffled=False, most_common=1),
}
draw_item = cache(generate.draw_item)  # several tests ask the same problems
problem_of = cache(TASK.problem)
NOUNS = nouns_of(read_systems(""))


def items(options: IgsmOptions, count: int, split: str = "train") -> Iterator[IgsmItem]:
    return (draw_item(options, split, 1, index) for index in range(count))


def needed(graph: QuantityGraph) -> set[Quantity]:
    """What the question depends on, found from it backwards."""
    found, waiting = {graph.asked}, [graph.asked]
    while waiting:
        fresh = [parent for parent in graph.parents(waiting.pop()) if parent not in found]
        found.update(fresh)
        waiting += fresh
    return found


@pytest.mark.parametrize("name", SIZES)
def test_a_problem_is_what_its_level_says(name: str) -> None:
    for item in items(SIZES[name], 60):
        graph = item.problem
        assert sum(max(1, len(_terms(graph, one)) - 1) for one in graph.order) == item.level
        assert needed(graph) == set(graph.order)
        assert graph.order[-1] == graph.asked
        for place, one in enumerate(graph.order):
            assert set(graph.parents(one)) <= set(graph.order[:place])
        for equation in graph.equations.values():
            assert 1 <= len(equation.parents) + (equation.constant is not None) <= MAX_PARENTS
        assert SIZES[name].redundant or set(graph.equations) <= set(graph.order)


def _terms(graph: QuantityGraph, one: Quantity) -> list[object]:
    return [part for part in graph.expression(one) if not isinstance(part, str)]


def check_texts(item: IgsmItem) -> None:
    """The answer follows from either text alone."""
    for prompt in (text_prompt(item.problem, item.names), compact_prompt(item.problem)):
        assert read_prompt(prompt, NOUNS).answer() == item.problem.answer, prompt


@pytest.mark.parametrize("name", SIZES)
def test_the_text_alone_determines_the_answer(name: str) -> None:
    for item in items(SIZES[name], 60):
        check_texts(item)


@pytest.mark.slow
def test_the_text_alone_determines_the_answer_of_2500_problems() -> None:
    """A fault in one problem of 500 is found with 99 %."""
    for item in items(SIZES["paper"], 2500):
        check_texts(item)


def test_the_papers_law_of_operations() -> None:
    """P(15) = 11/36 … P(20) = 1/36: chi-square with 5 degrees of freedom, 99.9 %."""
    count = 3600
    counts = Counter(level_at(SIZES["paper"], Draws(f"law {index}".encode()), index) for index in range(count))
    expected = {15 + place: count * share / 36 for place, share in enumerate((11, 9, 7, 5, 3, 1))}
    assert sum((counts[level] - wanted) ** 2 / wanted for level, wanted in expected.items()) < 20.5


def test_p02_no_template_is_in_two_splits_and_names_or_orders_do_not_change_it() -> None:
    seen: dict[str, set[str]] = {}
    for split in BINS:
        for item in items(IgsmOptions(levels=(4, 5), most_common=1), 40, split):
            assert int(item.template, 16) % N_BINS in BINS[split]
            seen.setdefault(item.template, set()).add(split)
        for item in items(IgsmOptions(levels=(1, 2, 3), most_common=1), 30, split):
            seen.setdefault(compact_prompt(item.problem), set()).add(split)
    assert all(len(splits) == 1 for splits in seen.values())
    assert sorted(place for places in BINS.values() for place in places) == list(range(N_BINS))


def test_no_answer_is_right_too_often() -> None:
    """0 is the answer to one problem in four as they come; 400 problems show 6 % to ± 2.4."""
    counts = Counter(item.problem.answer for item in items(IgsmOptions(levels=(15,)), 400))
    assert counts.most_common(1)[0][1] / 400 < 0.09


@pytest.mark.parametrize(
    ("law", "level"),
    [
        pytest.param(law, level, marks=pytest.mark.slow if level > 15 else ())
        for law, levels in KNOWN_SHARES.items()
        for level in levels
    ],
)
def test_the_known_shares_are_those_that_are_measured(law: str, level: int) -> None:
    assert measure_shares(IgsmOptions(law=law), level) == answer_shares(IgsmOptions(law=law), level)


def test_names_are_many_and_each_text_is_well_formed() -> None:
    systems = read_systems("")
    things = [f"{kind} {one.noun}" for system in systems for one in system for of in one.kinds for kind in of]
    assert len(set(things)) == len(things) >= 200
    phrase = r"the (total )?number of [A-Z]\w+( [A-Z]\w+)? in each [A-Z]\w+ [A-Z]\w+"
    listed = rf"{phrase}(, {phrase})*( and {phrase})?"
    fact = re.compile(
        rf"(?i:{phrase}) equals (\d+|(\d+ (times|more than) )?((the sum of|the difference between) )?{listed})\."
    )
    plurals = {one.plural for system in systems for one in system}
    for item in items(SIZES["paper"], 40):
        intro, facts, question = text_prompt(item.problem, item.names).split("\n\n")
        assert all(fact.fullmatch(line) for line in facts.split("\n")), facts
        counted = re.findall(r"number of (?:\w+ )?(\w+) in each \w+ (\w+)", facts + question)
        assert all(many in plurals and one not in plurals for many, one in counted)
        assert re.match(rf"What is {phrase}\? ", question)
        assert intro.count("\n") == 0


BEHAVIOURS = {
    "plain": PLAIN,
    "BRIDGE": BRIDGE,
    "subgoals": Behaviours(subgoals=True),
    "analysis": Behaviours(analysis=(0.0, *[0.5] * 5)),
    "reflection": Behaviours(reflection=0.3),
    "reordered": Behaviours(reordered=True),
    "padded": Behaviours(padded=True),
    "all of it": Behaviours(subgoals=True, analysis=ANALYSIS_LEVELS[4], reflection=0.9),
}


@pytest.mark.parametrize("behaviours", BEHAVIOURS)
@pytest.mark.parametrize("name", ["paper", "iGSM", "tiny"])
def test_no_solution_states_a_wrong_value(name: str, behaviours: str) -> None:
    """Every form of every equation is worked out again, and the judge of chains agrees."""
    for style in ("text", "compact"):
        options = replace(SIZES[name], style=style, process=True)
        for index in range(10):
            problem = problem_of(options, "train", 1, index)
            text = TASK.solution(problem, BEHAVIOURS[behaviours], index)
            assert TASK.verdict(text, problem.ground_truth).score == 1, text
            for chain in re.findall(r"\w+ = (.+)\.$" if style == "text" else r"^\w+=(.+)$", text, re.MULTILINE):
                forms = [form for form in chain.split("=") if not re.search("[A-Za-z]", form)]
                values = [value_of(parse(form, "+-*") or []) for form in forms]
                assert len({value % options.modulus if options.modulus else value for value in values}) == 1, chain


def test_how_often_behaviours_occur() -> None:
    """The paper's arms: analysis on half of the eligible equations, six in ten solutions try something in vain."""
    blocked, steps, analysed, eligible = [], 0, 0, 0
    for item in items(IgsmOptions(law="min-of-two"), 300):
        found = plan_steps(item.problem, BRIDGE, Draws(f"{item.index}".encode()))
        blocked.append(sum(bool(step.missing) for step in found))
        steps += len(found)
        named = [step for step in found if not step.quantity.is_abstract and item.problem.parents(step.quantity)]
        eligible, analysed = eligible + len(named), analysed + sum(step.analysed for step in named)
    assert 0.5 < sum(map(bool, blocked)) / 300 < 0.7
    assert 0.05 < sum(blocked) / steps < 0.09
    assert 0.42 < analysed / eligible < 0.56


def test_after_a_step_in_vain_comes_one_that_succeeds() -> None:
    for item in items(SIZES["paper"], 30):
        steps = plan_steps(item.problem, Behaviours(reflection=1.0), Draws(b"all"))
        assert not any(one.missing and other.missing for one, other in itertools.pairwise(steps))
        assert not steps[-1].missing
        assert [step.quantity for step in steps].count(item.problem.asked) == 1


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    for chosen, message in (
        ({"levels": (0,)}, "levels=.0.: give different whole numbers from 1 to 40"),
        ({"levels": (3, 5), "law": "min-of-two"}, "give all levels from the least to the largest"),
        ({"law": "uniform"}, "law=uniform: choose one of equal, min-of-two"),
        ({"modulus": 1}, "modulus=1: give 0"),
        ({"most_common": 0}, "most_common=0: give 0.01 to 1"),
        ({"levels": (1,)}, r"no problem of 1 operations found .* or a larger most_common \(now 0.06\)"),
        ({"names": "nowhere.yaml"}, "nowhere.yaml: no such file"),
    ):
        with pytest.raises(UserError, match=message):
            TASK.problem(IgsmOptions(**chosen), "train", 1, 0)
    with pytest.raises(UserError, match="split=dev: no such split"):
        TASK.problem(IgsmOptions(), "dev", 1, 0)
    ours = BUILT_IN.read_text()
    for change, message in (
        (("[North, South,", "[North, North,"), "harbour.0.: kinds: North is there twice"),
        (("noun: Ship", "noun: Dock"), "harbour: Dock stands for two things"),
        (("noun: Campus", "noun: Tool"), "campus: Tool is a category of harbour too"),
        (("campus:", "harbour:"), "harbour is given twice"),
        (("[Oak, Pine,", "[oak, Pine,"), "'oak': give one word of ASCII letters with a capital"),
        (("Oak, Pine, Cedar,", ""), "give at least 4 kinds in each list"),
    ):
        path = tmp_path / "names.yaml"
        assert change[0] in ours
        path.write_text(ours.replace(*change))
        read_systems.cache_clear()
        with pytest.raises(UserError, match=message):
            TASK.problem(IgsmOptions(names=str(path)), "train", 1, 0)


def test_names_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "names.yaml"
    path.write_text(
        BUILT_IN.read_text().replace("noun: Crate", "noun: Chest").replace("plural: Crates", "plural: Chests")
    )
    problems = [TASK.problem(IgsmOptions(names=str(path), most_common=1), "train", 1, index) for index in range(8)]
    assert any("Chest" in problem.prompt for problem in problems)
    assert not any("Crate" in problem.prompt for problem in problems)
    assert all(TASK.asks_its_truth(problem) for problem in problems)


def test_a_row_without_its_graph_is_refused() -> None:
    problem = TASK.problem(SIZES["tiny"], "train", 1, 0)
    for graph in ("{}", "[]", '{"facts": ["b1a0=x"], "order": ["b1a0"], "modulus": 0}'):
        with pytest.raises(UserError, match="its metadata hold no graph"):
            graph_in(replace(problem, metadata={"graph": graph}))


@pytest.mark.parametrize("style", ["text", "compact"])
def test_padding_makes_a_plain_solution_as_long_as_with_all_behaviours(style: str) -> None:
    for index in range(20):
        problem = problem_of(IgsmOptions(style=style, most_common=1), "train", 1, index)
        padded, whole, plain = (
            TASK.solution(problem, behaviours, 3) for behaviours in (Behaviours(padded=True), BRIDGE, PLAIN)
        )
        assert len(padded) == max(len(whole), len(plain))
        assert [line for line in padded.split("\n") if line in plain.split("\n")] == plain.split("\n")


def test_a_reworded_problem_is_the_same() -> None:
    problem = TASK.problem(IgsmOptions(process=True, most_common=1), "train", 1, 0)
    other = TASK.reworded(problem, 1)
    assert other.prompt != problem.prompt
    assert sorted(other.prompt.split("\n")) == sorted(problem.prompt.split("\n"))
    assert TASK.asks_its_truth(other)
    assert TASK.verdict(TASK.solution(other, BRIDGE, 0), problem.ground_truth).score == 1
