"""A problem file in inspect_ai: evaluations with its mock model, right, wrong, silent and cut off; failing judges."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from adapter_rows import NONE, PROBLEMS, RIGHT, ROOT, WRONG, chat_server, write_problems

pytest.importorskip("inspect_ai")

from inspect_ai import eval as evaluate
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from compositionality.adapters import inspect_task as adapter
from compositionality.adapters.inspect_task import inspect_task
from compositionality.types import Reason, Verdict


def run(task: Any, responses: list[str], folder: Path, stop: str = "stop", **settings: Any) -> EvalLog:
    """An evaluation of the mock model, which says ``responses[n]`` to the n-th problem."""
    said = dict(zip([problem.prompt for problem in PROBLEMS], responses, strict=True))

    def answer(messages: list[Any], *_: object) -> ModelOutput:
        output = ModelOutput.from_content("mockllm", said[messages[-1].text], stop_reason=stop)
        output.usage = ModelUsage()  # else the mock model downloads a tokenizer
        return output

    model = get_model("mockllm/model", custom_outputs=answer)
    (log,) = evaluate(task, model=model, log_dir=str(folder / "logs"), display="none", **settings)
    return log


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    return write_problems(tmp_path / "test.parquet")


def values(log: EvalLog) -> list[Any]:
    assert log.samples
    return [sample.scores["verdict"].value for sample in sorted(log.samples, key=lambda sample: int(sample.id))]


def test_right_wrong_and_no_answer(problems: Path, tmp_path: Path) -> None:
    log = run(inspect_task(problems), [RIGHT[0], WRONG[1], NONE], tmp_path)
    assert log.status == "success"
    assert values(log) == ["C", "I", "N"]
    assert [sample.scores["verdict"].metadata["reason"] for sample in log.samples or ()] == [
        "correct", "wrong_value", "no_answer",
    ]  # fmt: skip
    metrics = {name: metric.value for score in log.results.scores for name, metric in score.metrics.items()}
    assert metrics["accuracy"] == pytest.approx(1 / 3)
    assert (metrics["level 2"], metrics["level 3"]) == (0.5, 0.0)


def test_a_response_that_was_cut_off_is_no_answer(problems: Path, tmp_path: Path) -> None:
    log = run(inspect_task(problems), RIGHT, tmp_path, stop="max_tokens")
    assert values(log) == ["N", "N", "N"]


def test_p05_a_judge_that_fails_is_an_error_of_the_sample_and_too_many_fail_the_evaluation(
    problems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails on the right response to the first problem."""
    real = adapter.SharedJudge.judge

    def judge(self: Any, item: Any) -> Verdict:
        return Verdict(0.0, Reason.ERROR) if item.response == RIGHT[0] else real(self, item)

    monkeypatch.setattr(adapter.SharedJudge, "judge", judge)
    log = run(inspect_task(problems, max_error_rate=0.5), RIGHT, tmp_path)
    assert log.status == "success"
    failed, *judged = sorted(log.samples or (), key=lambda sample: int(sample.id))
    assert "the judge failed" in failed.error.message
    assert not failed.scores
    assert [sample.scores["verdict"].value for sample in judged] == ["C", "C"]
    assert log.results.scores[0].metrics["accuracy"].value == 1.0
    assert run(inspect_task(problems), RIGHT, tmp_path / "many").status == "error"


def test_the_command_asks_a_server(problems: Path, tmp_path: Path) -> None:
    """By the provider ``openai``, whose package inspect_ai does not install."""
    said = {problem.prompt: text for problem, text in zip(PROBLEMS, [RIGHT[0], WRONG[1], NONE], strict=True)}
    with chat_server(said) as url:
        command = [
            Path(sys.executable).parent / "inspect", "eval", "examples/adapters/inspect_problems.py",
            "-T", f"problems={problems}", "--model", "openai/m", "-M", "responses_api=false", "--model-base-url", url,
            "--display", "none", "--log-dir", tmp_path / "logs",
        ]  # fmt: skip
        own = {**os.environ, "OPENAI_API_KEY": "none"}
        done = subprocess.run(command, env=own, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "logs").iterdir()
    assert values(read_eval_log(str(file))) == ["C", "I", "N"]
