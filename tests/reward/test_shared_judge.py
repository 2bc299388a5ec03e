"""One judge for many threads: each gets the verdict on its own response, also while another one hangs or crashes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compositionality.errors import UserError
from compositionality.reward import judge_response, shared
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.reward.shared import SharedJudge
from compositionality.types import Reason


def test_p04_p05_threads_get_their_own_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def pool(*limits: float, function: str | None) -> JudgePool:
        started.append(JudgePool(*limits, function=function))
        return started[-1]

    monkeypatch.setattr(shared, "JudgePool", pool)
    judge = SharedJudge(2, 0.3, f"{Path(__file__).parent / 'bad_judges.py'}:judge")
    responses = ["yes", "hang", "no", "crash", "yes", "raise", "no", "yes"] * 2
    with ThreadPoolExecutor(8) as threads:
        verdicts = list(threads.map(lambda text: judge.judge(JudgeInput("any", text, "yes")), responses))
    assert len(started) == 2
    expected = {"yes": Reason.CORRECT, "no": Reason.WRONG}
    assert [verdict.reason for verdict in verdicts] == [expected.get(text, Reason.ERROR) for text in responses]


def test_an_unknown_source_is_refused_and_the_judge_goes_on() -> None:
    judge = SharedJudge(1)
    for _ in range(2):
        with pytest.raises(UserError, match="unknown data_source"):
            judge.judge(JudgeInput("nobody", "x", "y"))


def test_threads_share_the_process_of_a_judge_that_is_not_trusted() -> None:
    """As verl's reward workers do: each gets the verdict on its own response."""
    answers = [str(number % 3) for number in range(60)]
    with ThreadPoolExecutor(8) as threads:
        verdicts = list(threads.map(lambda text: judge_response("math__x", f"\\boxed{{{text}}}", "1"), answers))
    assert [verdict.answer for verdict in verdicts] == answers
    assert [verdict.score for verdict in verdicts] == [float(text == "1") for text in answers]
