"""A problem file in verifiers: its tasks, scores of given responses, and real rollouts against a server."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from adapter_rows import NONE, PROBLEMS, RIGHT, ROOT, WRONG, chat_server, write_problems

pytest.importorskip("verifiers.v1")

import verifiers.v1 as vf

from compositionality.adapters import verifiers_env
from compositionality.adapters.verifiers_env import JudgeConfig, ProblemConfig, ProblemTask, ProblemTaskset
from compositionality.types import Reason, Verdict


@pytest.fixture
def tasks(tmp_path: Path) -> list[ProblemTask]:
    return list(ProblemTaskset(ProblemConfig(problems=write_problems(tmp_path / "test.parquet"))))


def trace_of(task: ProblemTask, text: str, finish: str = "stop") -> vf.Trace:
    """The trace of one model call that said ``text``."""
    return vf.Trace(
        task=vf.TraceTask(type="ProblemTask", data=task.data),
        agent=vf.AgentInfo(config=vf.AgentConfig(model="m")),
        nodes=[
            vf.MessageNode(message=vf.UserMessage(content=task.data.prompt_text)),
            vf.MessageNode(message=vf.AssistantMessage(content=text), parent=0, sampled=True),
        ],
        calls=[vf.ModelCall(node=1, finish_reason=finish)],
    )


def score(task: ProblemTask, text: str, finish: str = "stop") -> vf.Trace:
    """The same, scored as after a rollout."""
    trace = trace_of(task, text, finish)
    asyncio.run(task.score(trace))
    return trace


def test_a_task_for_each_row(tasks: list[ProblemTask]) -> None:
    assert [task.data.prompt for task in tasks] == [problem.prompt for problem in PROBLEMS]
    assert [task.data.idx for task in tasks] == [0, 1, 2]
    assert [(task.data.level, task.data.group) for task in tasks] == [(p.level, p.group) for p in PROBLEMS]


@pytest.mark.parametrize(("responses", "reward"), [(RIGHT, 1.0), (WRONG, 0.0), ([NONE] * 3, 0.0)])
def test_rewards_and_a_metric_for_each_reason(tasks: list[ProblemTask], responses: list[str], reward: float) -> None:
    for task, text in zip(tasks, responses, strict=True):
        trace = score(task, text)
        assert trace.reward == reward
        assert set(trace.metrics) == {reason.value for reason in Reason}
        assert sum(trace.metrics.values()) == 1
        assert trace.metrics["correct"] == reward
        assert trace.metrics["no_answer"] == float(text == NONE)


def test_a_response_that_was_cut_off_is_overlong(tasks: list[ProblemTask]) -> None:
    trace = score(tasks[0], RIGHT[0], "length")
    assert (trace.reward, trace.metrics["overlong"]) == (0.0, 1.0)


def test_the_shape_is_a_key(tmp_path: Path) -> None:
    config = ProblemConfig(problems=write_problems(tmp_path / "test.parquet"), task=JudgeConfig(shape="paper"))
    task = next(iter(ProblemTaskset(config)))
    assert [score(task, text).reward for text in (RIGHT[0], WRONG[0], NONE)] == [1.0, 0.0, -1.0]


def test_p05_a_judge_that_fails_is_an_error_without_a_reward(
    tasks: list[ProblemTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    class FailingJudge:
        def judge(self, item: object) -> Verdict:
            return Verdict(0.0, Reason.ERROR)

    monkeypatch.setattr(verifiers_env, "_shared_judge", lambda workers: FailingJudge())
    trace = trace_of(tasks[0], RIGHT[0])
    with pytest.raises(vf.TaskError, match="the judge failed"):
        asyncio.run(tasks[0].score(trace))
    assert trace.rewards == {"verdict": None}
    assert trace.metrics["error"] == 1


def test_real_rollouts_of_the_example(tmp_path: Path) -> None:
    """``vf-eval`` asks a server, with its own chat program in a subprocess, which uv would give an environment from the
    network: this one has what it imports.
    """
    uv = tmp_path / ".local/bin/uv"  # where verifiers looks first
    uv.parent.mkdir(parents=True)
    uv.write_text(
        f'#!/bin/sh\ncase "$*" in *--help) echo --script ;; python*) echo {shlex.quote(sys.executable)} ;; esac\n'
    )
    uv.chmod(0o755)
    problems = write_problems(tmp_path / "test.parquet")
    said = [RIGHT[0], WRONG[1], NONE]
    command: list[Any] = [
        Path(sys.executable).parent / "vf-eval", "verifiers_problems", "-n", "20", "--env.taskset.problems", problems,
        "--model", "m", "--env.agent.runtime.type", "subprocess", "--no-push", "--no-rich", "-o", tmp_path / "out",
    ]  # fmt: skip
    path = os.pathsep.join([str(ROOT / "examples/adapters"), str(ROOT)])
    with chat_server({problem.prompt: text for problem, text in zip(PROBLEMS, said, strict=True)}) as url:
        command += ["--client.base-url", url, "--client.api-key-var", "NO_KEY"]
        environment = {**os.environ, "PYTHONPATH": path, "NO_KEY": "none", "HOME": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "out").rglob("traces.jsonl")
    episodes = [json.loads(line) for line in file.read_text().splitlines()]
    traces = [trace for episode in episodes for trace in episode["traces"]]
    found = {trace["task"]["data"]["prompt"]: trace for trace in traces}
    assert all(trace["ok"] for trace in traces), [trace["errors"] for trace in traces]
    reasons = [found[problem.prompt]["info"]["verdict"]["reason"] for problem in PROBLEMS]
    assert reasons == ["correct", "wrong_value", "no_answer"]
    assert [found[problem.prompt]["rewards"]["verdict"]["score"] for problem in PROBLEMS] == [1.0, 0.0, 0.0]
