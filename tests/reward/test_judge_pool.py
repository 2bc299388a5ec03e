"""Judges in processes of their own: in order, in time, whatever one response does; shared by threads."""

import itertools
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from compositionality.errors import UserError
from compositionality.reward import pool as pools
from compositionality.reward import worker
from compositionality.reward.judge import judge_response
from compositionality.reward.pool import JudgeInput, JudgePool, SharedJudge
from compositionality.types import STOP, Reason, Verdict

BAD_JUDGES = f"{Path(__file__).parent / 'bad_judges.py'}:judge"
GOLD = '{"ref_output": "abc"}'


PATIENT_S = 120
"""Seconds that no judge needs, however busy the machine."""


def bad_pool(timeout_s=PATIENT_S):
    return JudgePool(2, timeout_s=timeout_s, max_error_rate=0.5, memory_mb=512, function=BAD_JUDGES)


@pytest.fixture
def pool():
    with bad_pool() as pool:
        yield pool


def items(*responses):
    return [JudgeInput("any", response, "good") for response in responses]


def test_verdicts_come_in_order_from_the_registered_judges():
    with JudgePool(2) as pool:
        responses = [f'{{"output": "{"abc" if i % 3 else i}"}}' for i in range(2000)]
        verdicts = pool.judge([JudgeInput("string-all-level1", response, GOLD) for response in responses])
    assert [verdict.reason is Reason.CORRECT for verdict in verdicts] == [i % 3 > 0 for i in range(2000)]
    assert (pool.judged, pool.errors) == (2000, 0)


def test_the_time_of_an_answer_is_not_that_of_imports(monkeypatch):
    def verdict(*_):
        order.append("judged")
        return Verdict(1.0, Reason.CORRECT)

    order = []
    monkeypatch.setattr(worker, "task_of", lambda _: SimpleNamespace(libraries=("large",), verdict=verdict))
    monkeypatch.setattr(worker, "import_module", order.append)
    monkeypatch.setattr(worker.signal, "setitimer", lambda _, seconds: order.append(seconds))
    assert worker._verdict(None, 60.0, "any", "good", "good", STOP, {})[0] == 1
    assert order == ["large", 60, "judged", 0]


@pytest.mark.parametrize("trouble", ["hang", "spin", "crash", "exit", "raise", "eat"])
def test_p04_p05_trouble_costs_its_own_item_only(trouble):
    responses = ["good"] * 40 + [trouble] + ["bad"] * 39
    with bad_pool(2.0 if trouble in ("hang", "spin") else PATIENT_S) as pool:
        verdicts = pool.judge(items(*responses))
        assert [verdict.reason for verdict in verdicts] == [Reason.CORRECT] * 40 + [Reason.ERROR] + [Reason.WRONG] * 39
        assert (pool.judged, pool.errors) == (80, 1)
        assert pool.judge(items("good"))[0].reason is Reason.CORRECT


def test_p05_a_run_with_too_many_errors_stops():
    with JudgePool(1, timeout_s=PATIENT_S, max_error_rate=0.01, function=BAD_JUDGES) as pool:
        pool.judge(items(*["good"] * 99, "raise"))
        with pytest.raises(UserError, match="judge failed on 2 of 101 responses"):
            pool.judge(items("crash"))
        assert pool.judge(items("good"))[0].reason is Reason.CORRECT


def test_p05_what_the_server_failed_on_is_an_error_that_no_judge_sees_or_is_blamed_for():
    with JudgePool(1, timeout_s=PATIENT_S, max_error_rate=0.0, function=BAD_JUDGES) as pool:
        batch = [JudgeInput("any", "", "good", "failed"), *items("good"), JudgeInput("any", "hang", "good", "failed")]
        assert [verdict.reason for verdict in pool.judge(batch)] == [Reason.ERROR, Reason.CORRECT, Reason.ERROR]
        assert (pool.judged, pool.errors) == (1, 0)
    assert judge_response("string-all-level1", '{"output": "abc"}', GOLD, "failed").reason is Reason.ERROR


def test_lone_surrogates_and_empty_batches(pool):
    assert pool.judge([]) == []
    assert pool.judge(items("\ud800"))[0].answer == "?"


def test_a_worker_starts_without_heavy_packages(pool):
    modules = set(pool.judge(items("modules"))[0].answer.split(","))
    assert "compositionality.reward.judge" in modules
    assert not modules & {"torch", "transformers", "pyarrow", "pandas", "ray", "vllm", "verl", "numpy"}


def test_p01_the_hash_seed_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = set()
    for seed in "12":
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        with bad_pool() as pool:
            answers.add(pool.judge(items("hash"))[0].answer)
    assert len(answers) == 1


def test_closing_leaves_no_process():
    pool = JudgePool(2, function=BAD_JUDGES)
    pids = [worker.process.pid for worker in pool.workers]
    pool.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("response", ["slow", "good"])
def test_a_worker_whose_parent_was_killed_ends_without_a_word(tmp_path, response):
    """SIGKILL while the worker judges, so that it finds nobody to answer; and while it has just answered."""
    code = (
        "import json, os, signal, sys\n"
        "from compositionality.reward.pool import JudgeInput, JudgePool\n"
        "pool = JudgePool(1, function=sys.argv[2])\n"
        "worker = pool.workers[0]\n"
        "worker.send([0, 1], json.dumps([JudgeInput('any', sys.argv[1], 'good')] * 2).encode())\n"
        "print(worker.process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with (tmp_path / "said").open("w") as said:
        command = [sys.executable, "-c", code, response, BAD_JUDGES]
        parent = subprocess.run(command, stdout=subprocess.PIPE, stderr=said, text=True, check=False)
    assert parent.returncode == -signal.SIGKILL
    while Path(f"/proc/{parent.stdout.strip()}/exe").exists():
        time.sleep(0.05)
    assert (tmp_path / "said").read_text() == ""


def test_p04_p05_threads_get_their_own_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def pool(*limits: float, function: str | None) -> JudgePool:
        started.append(JudgePool(*limits, function=function))
        return started[-1]

    monkeypatch.setattr(pools, "JudgePool", pool)
    judge = SharedJudge(2, 2.0, BAD_JUDGES)
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


@pytest.mark.parametrize(
    "source", ["math__x", "stem__supergpqa", "stem_web", "table__x", "simulation__codeio", "logic__graph"]
)
def test_p05_a_truth_of_any_kind_is_an_error_and_raises_nothing(source: str) -> None:
    truths = (None, True, float("nan"), 10**400, 10**5000, b"x", object(), [None], {1: {2}}, "\ud800", "[" * 99_999, 1j)
    for truth, info in itertools.product(truths, (None, "x", [1], {"options": 5, "question": 7})):
        assert judge_response(source, "\\boxed{6}", truth, extra_info=info).score == 0
