"""What every task promises, on every registered task in each of its styles, and on the toy task."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
from task_options import COUNTDOWN, STRING

from compositionality.errors import MissingPackageError, UserError
from compositionality.reward.judge import judge_response
from compositionality.tasks import Task, all_tasks
from compositionality.tasks.diagnosis import FAILURES
from compositionality.types import LENGTH, Completion, Problem, Reason, Verdict

sys.path.insert(0, str(Path(__file__).parents[1] / "toy_task"))
from digit_sorting import TASK as TOY

ATTACKS = [
    "", " ", "\n", "\x00", "\ud800", "None", "nan", "inf", "=", "==", "{}", '{"output": null}', '{"output": ["a"]}',
    "<answer></answer>", "<answer>", "</answer>", "<answer><answer></answer>", "<answer>9**9**9**9</answer>",
    '<answer>__import__("os").system("true")</answer>', "(lambda: 0)()", "{" * 10_000, "(" * 10_000,
    "<answer>" * 10_000, '{"output": ' * 1_000, "=" * 10_000, "x" * 1_000_000, "{" * 1_000_000, "١٢٣", "１+２",
]  # fmt: skip


def cases() -> Iterator[Any]:
    """Every task with the default options of its first mode, in each of its styles and kinds.

    One that needs a package that is not installed is a case that is skipped, with what to install.
    """
    for task in [*all_tasks().values(), TOY]:
        try:
            options = next(iter(task.modes.values())).options()
        except MissingPackageError as lacking:
            yield pytest.param((task, None), id=task.name, marks=pytest.mark.skip(reason=str(lacking)))
            continue
        for chosen in [*({"style": one} for one in task.styles), *({"kind": one} for one in task.kinds)] or [{}]:
            yield pytest.param((task, replace(options, **chosen)), id=" ".join([task.name, *chosen.values()]))


def more_cases() -> Iterator[Any]:
    for name, table in (("string", STRING), ("countdown", COUNTDOWN)):
        for chosen, options in table.items():
            yield pytest.param((all_tasks()[name], options), id=f"{name} {chosen} options")


@pytest.fixture(params=[*cases(), *more_cases()])
def wide_case(request: pytest.FixtureRequest) -> tuple[Task, Any]:
    """Also with many other options."""
    return request.param


@pytest.fixture(params=cases())
def case(request: pytest.FixtureRequest) -> tuple[Task, Any]:
    return request.param


def test_a_task_without_its_package_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    lacking = [one for one in cases() if one.marks]
    assert [one.id for one in lacking] == ["reasoning_gym"]
    assert lacking[0].marks[0].kwargs["reason"].endswith("is not installed; run: bash bash/setup.sh --full")


def some(case: tuple[Task, Any], count: int = 6) -> list[Problem]:
    task, options = case
    return [task.problem(options, "train", 1, index) for index in range(count)]


def judged(task: Task, text: str, problem: Problem) -> Verdict:
    """As the pipeline judges: in this process only if the judge is trusted."""
    if task.trusted_judge:
        return task.verdict(text, problem.ground_truth)
    return judge_response(problem.data_source, text, problem.ground_truth)


MUTATIONS: dict[str, Callable[[str], str]] = {
    "one more": lambda answer: f"{answer}1",
    "one fewer": lambda answer: answer[:-1],
    "a letter": lambda answer: f"{answer}q",
}


def test_p04_gold_scores_one_and_mutated_gold_none(wide_case: tuple[Task, Any]) -> None:
    task, _ = wide_case
    for problem in some(wide_case, 6 if task.trusted_judge else 2):
        gold = task.gold(problem)
        verdict = judged(task, gold, problem)
        assert verdict.reason is Reason.CORRECT, gold
        assert judged(task, problem.prompt, problem).reason is not Reason.CORRECT
        before, answer, after = gold.rpartition(str(verdict.answer))
        assert answer
        for name, mutate in MUTATIONS.items():
            changed = before + mutate(answer) + after
            assert judged(task, changed, problem).reason is not Reason.CORRECT or changed == gold, (name, changed)


def test_the_spans_of_a_gold_solution_cover_it(case: tuple[Task, Any]) -> None:
    task, _ = case
    for problem in some(case):
        gold, spans = task.gold(problem), task.gold_spans(problem)
        assert "".join(gold[span.start : span.end] for span in spans) in ("", gold)
        assert not spans or {span.step for span in spans} == set(range(gold.count("\n") + 1))
        assert all("=" not in gold[span.start : span.end] for span in spans if span.role == "result")


def test_p04_attacks_and_the_prompt_itself_score_nothing(case: tuple[Task, Any]) -> None:
    task, _ = case
    problem = some(case, 1)[0]
    for text in [*ATTACKS, problem.prompt, problem.prompt * 3]:
        verdict = judged(task, text, problem)
        assert verdict.reason not in (Reason.CORRECT, Reason.ERROR), text[:60]
        assert 0 <= verdict.score < 1


@pytest.mark.parametrize("first_case", [next(kinds) for _, kinds in groupby(cases(), lambda one: one.id.split()[0])])
def test_p04_a_thought_is_never_the_answer(first_case: tuple[Task, Any]) -> None:
    """Whether the response opens it or the prompt has; the rest is judged as it is without a thought."""
    task, _ = first_case
    problem = some(first_case, 1)[0]
    gold, lost = task.gold(problem), "I do not know"
    for before, right in (
        ("", True),
        ("<think>hm</think>\n\n", True),
        ("hm</think>", True),
        (f"<think>{lost}</think>", True),
        (f"<think>{gold}</think>\n", True),
        ("<think>a</think> no <think>b</think>", True),
        ("<think>hm ", False),
        ("hm</think> or <think>", False),
    ):
        verdict = judged(task, before + gold, problem)
        assert verdict == (judged(task, gold, problem) if right else Verdict(0.0, Reason.NO_ANSWER)), before
    without = judged(task, lost, problem)
    for thought in (f"<think>{gold}</think>", f"{gold}</think>", f"<think>a</think>{gold}<think>b</think>"):
        assert judged(task, f"{thought} {lost}", problem) == without
        assert judged(task, thought, problem).reason is not Reason.CORRECT
    assert without.reason is not Reason.CORRECT


def test_p01_random_access_equals_iteration_with_any_number_of_processes(wide_case: tuple[Task, Any]) -> None:
    task, options = wide_case
    alone = list(task.problems(options, "train", 1, 12 * len(options.levels)))
    assert alone == [task.problem(options, "train", 1, problem.index) for problem in alone]
    assert {problem.level for problem in alone} == set(options.levels)
    assert len({task.identity(problem).problem for problem in alone}) == len(alone)


def test_p02_splits_and_seeds_share_no_problem(case: tuple[Task, Any]) -> None:
    """Neighbouring seeds, and all pairs of the seeds from 0 up to the number that the task names."""
    task, options = case
    if task is TOY:
        pytest.skip("its streams differ by split only")
    streams = [("test", 0), *(("train", seed) for seed in range(max(2, task.seed_classes)))]
    keys = [
        {task.identity(task.problem(options, split, seed, index)).problem for index in range(12)}
        for split, seed in streams
    ]
    if task.name == "reasoning_gym":
        assert len(set().union(*keys)) > len(keys[0])  # its data sets may draw a problem twice: avoid= says so
    else:
        assert len(set().union(*keys)) == 12 * len(streams)


def test_identity_and_skills_are_stable(case: tuple[Task, Any]) -> None:
    task, _ = case
    for problem, again in zip(some(case), some(case), strict=True):
        assert task.identity(problem) == task.identity(again)
        assert list(task.skills(problem)) == list(dict.fromkeys(task.skills(again)))
        assert task.level(problem) == problem.level
        assert task.hide_definitions(task.hide_definitions(problem.prompt)) == task.hide_definitions(problem.prompt)


def test_every_row_belongs_to_its_task_and_its_truth_is_checked(case: tuple[Task, Any]) -> None:
    import re

    task, _ = case
    for problem in some(case):
        assert any(re.fullmatch(pattern, problem.data_source) for pattern in task.data_sources)
        task.parse_truth(problem.ground_truth)
    with pytest.raises(UserError):
        task.parse_truth("{broken")


def test_the_audit_finds_nothing_wrong_with_clean_problems(case: tuple[Task, Any]) -> None:
    task, options = case
    problems = [replace(p, metadata={**p.metadata, "split": "train"}) for p in some(case)]
    figures = task.figures([task.facts(problem) for problem in problems if problem.level == options.levels[0]])
    assert not any(value for name, value in figures.items() if name.startswith("wrong_"))
    json.dumps(figures)
    assert all(isinstance(column.cell(figures), str) for column in task.columns)


def test_a_prompt_that_is_not_its_truths_is_seen(case: tuple[Task, Any]) -> None:
    task, _ = case
    problems = some(case)
    for problem, other in pairwise(problems):
        if task.identity(problem).problem != task.identity(other).problem:
            mixed = replace(problem, prompt=other.prompt)
            assert (task.asks_its_truth(problem), task.asks_its_truth(mixed)) in ((True, False), (None, None))


def test_every_completion_has_one_class_of_failure(case: tuple[Task, Any]) -> None:
    task, _ = case
    problem = some(case, 1)[0]
    gold = Completion(task.gold(problem), 5, "stop")
    assert task.diagnose(problem, gold, Verdict(1.0, Reason.CORRECT)).failure == "correct"
    for text in ATTACKS:
        verdict = judged(task, text, problem)
        assert task.diagnose(problem, Completion(text, 5, "stop"), verdict).failure in FAILURES
        assert task.diagnose(problem, Completion(text, 5, LENGTH), verdict).failure == "overlong"
