"""One judge for many threads: each gets the verdict on its own response, also while another one hangs or crashes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compositionality.adapters import shared_judge
from compositionality.adapters.shared_judge import SharedJudge
from compositionality.errors import UserError
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.types import Reason

ROOT = Path(__file__).parents[2]


def test_p04_p05_threads_get_their_own_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def pool(max_error_rate: float) -> JudgePool:
        started.append(JudgePool(timeout_s=0.3, max_error_rate=max_error_rate, judge="bad_judges:judge"))
        return started[-1]

    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'tests/reward'}:{ROOT}")
    monkeypatch.setattr(shared_judge, "JudgePool", pool)
    judge = SharedJudge(2)
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
