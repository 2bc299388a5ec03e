"""Traces of string problems with behaviours injected: right, read as the plain ones are."""

from dataclasses import replace

import pytest

from compositionality.errors import UserError
from compositionality.tasks.string.clean import StringOptions
from compositionality.tasks.string.task import TASK
from compositionality.tasks.task import ANALYSIS_LEVELS, PLAIN, Behaviours
from compositionality.types import Completion, Problem

OPTIONS = StringOptions(
    style="compact", levels=(1, 2, 4), frozen_parameters=True, alphabet="abcdefghij", input_length=(3, 6), max_length=10
)
ALL = Behaviours(analysis=ANALYSIS_LEVELS[4], reflection=1.0)


def problems() -> list[Problem]:
    return [TASK.problem(OPTIONS, "train", 1, index) for index in range(9)]


@pytest.mark.parametrize("behaviours", [PLAIN, ALL, Behaviours(reflection=0.5), Behaviours(padded=True)])
def test_an_injected_trace_is_right_and_composes(behaviours: Behaviours) -> None:
    for problem in problems():
        text = TASK.solution(problem, behaviours, 1)
        verdict = TASK.verdict(text, problem.ground_truth)
        found = TASK.diagnose(problem, Completion(text, 9, "stop"), verdict)
        assert (verdict.score, found.chain, found.fault) == (1.0, (True, True, True), None), text
        plain = TASK.gold(problem).split("\n")
        assert [line for line in text.split("\n") if line in plain] == plain


def test_what_is_injected() -> None:
    problem = problems()[2]
    lines = TASK.solution(problem, ALL, 1).split("\n")
    assert len(lines) == 4 + 4 + 3
    assert problem.prompt in lines
    assert sum("?" in line for line in lines) == 3
    longer = TASK.solution(problem, Behaviours(padded=True), 1)
    assert longer.strip("~\n") == TASK.gold(problem)


def test_a_fault_behind_a_note_is_found() -> None:
    problem = problems()[2]
    lines = TASK.solution(problem, ALL, 1).split("\n")
    wrong = "\n".join([*lines[:-1], f"{lines[-1]}a"])
    found = TASK.diagnose(problem, Completion(wrong, 9, "stop"), TASK.verdict(wrong, problem.ground_truth))
    assert (found.failure, found.fault) == ("atomic_error", "result")


def test_what_the_traces_cannot_hold_is_refused() -> None:
    english = TASK.problem(replace(OPTIONS, style="json"), "train", 1, 0)
    with pytest.raises(UserError, match="task string has no behaviours"):
        TASK.solution(english, ALL, 1)
