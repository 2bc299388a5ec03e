"""The launcher's child: watched, told apart when it dies or hangs, never left behind; what a person sees of it."""

import json
import math
import os
import queue
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, call

import pytest

from compositionality.errors import UserError
from compositionality.train.log import loggers
from compositionality.train.metrics import read_metrics, truncate_metrics
from compositionality.train.verl import launch, metrics
from compositionality.train.verl.launch import StepLines

# Starts a process in a session of its own, as Ray does, and tells its id.
WITH_ORPHAN = """
import subprocess, sys, time
orphan = subprocess.Popen(["sleep", "300"], start_new_session=True)
print("orphan", orphan.pid, flush=True)
"""


def run_child(code: str, folder: Path, stall_minutes: float = 1.0) -> None:
    variables = {**os.environ, launch.FAILURE_FILE: str(folder / "failure.txt")}
    launch.run_trainer(
        [sys.executable, "-c", code], variables, name="SFT", log=folder / "train.log", stall_minutes=stall_minutes
    )


def wait(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 300
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def gone(pid: int) -> bool:
    return wait(lambda: not Path(f"/proc/{pid}").exists())


def orphan_of(folder: Path) -> int:
    """The process that the child told about in its log."""
    log = folder / "train.log"
    assert wait(lambda: log.is_file() and log.read_text().endswith("\n")), "the child never started"
    return int(log.read_text().split("orphan ")[1].split()[0])


def test_output_is_shown_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_child("print('step:1 - train/loss:0.5'); print('noise')", tmp_path)
    shown = capsys.readouterr().out
    assert "step 1  loss 0.5" in shown
    assert "noise" not in shown
    assert (tmp_path / "train.log").read_text() == "step:1 - train/loss:0.5\nnoise\n"


def test_p18_a_failure_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"SFT: stopped with exit code 1 \(ValueError: no such thing\); full output in"):
        run_child("raise ValueError('no such thing')", tmp_path)
    with pytest.raises(UserError, match=r"SFT: stopped with exit code 137"):
        run_child("import os; os.kill(os.getpid(), 9)", tmp_path)


def test_p18_the_childs_own_reason_comes_first(tmp_path: Path) -> None:
    code = (
        "from compositionality.train.verl.launch import report_failure as t; t('the loss is nan'); raise SystemExit(2)"
    )
    with pytest.raises(UserError, match="SFT: the loss is nan; full output"):
        run_child(code, tmp_path)


class PatientQueue(queue.Queue[Any]):
    """Waits for the first line as long as the start of a child may take."""

    first = True

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        line = super().get(block, 300 if self.first else timeout)
        self.first = False
        return line


def test_nothing_is_left_behind_when_the_child_hangs_or_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "Queue", PatientQueue)
    with pytest.raises(UserError, match=r"no sign of life for 0\.01 minutes"):
        run_child(WITH_ORPHAN + "time.sleep(300)", tmp_path, stall_minutes=0.01)
    assert gone(orphan_of(tmp_path))
    (tmp_path / "train.log").unlink()
    run_child(WITH_ORPHAN, tmp_path)
    assert gone(orphan_of(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_behind_whatever_ends_the_launcher(tmp_path: Path, number: signal.Signals) -> None:
    parent = f"""
import signal, sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what it puts in the background without it
from test_sft_launch import WITH_ORPHAN, run_child
run_child(WITH_ORPHAN + "time.sleep(300)", Path({str(tmp_path)!r}))
"""
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid = orphan_of(tmp_path)
    process.send_signal(number)
    process.wait(timeout=600)
    assert gone(pid)


def test_metrics_go_on_where_the_checkpoint_left_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np
    import torch

    path = tmp_path / "metrics.jsonl"
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(path))
    for steps in ((1, 2, 3), (3, 4)):
        truncate_metrics(path, steps[0] - 1)
        logger = metrics.JsonLines("project", "experiment")
        for step in steps:
            logger.log({"loss": np.float32(step), "gradient": torch.tensor(math.nan), "table": [1]}, step)
        logger.finish()
    with path.open("a") as stream:
        stream.write('{"step": 5, "lo')
    rows = read_metrics(path)
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert rows[0] == {"step": 1, "loss": 1.0, "gradient": None}


@pytest.mark.parametrize(
    ("asked", "environment", "expected"),
    [
        (["console"], {}, ["console", "file"]),
        (["console", "wandb"], {}, ["console", "file"]),
        (["console"], {"WANDB_API_KEY": "k"}, ["console", "wandb", "file"]),
        (["console"], {"WANDB_MODE": "offline"}, ["console", "wandb", "file"]),
        (["console"], {"WANDB_API_KEY": "k", "WANDB_MODE": "disabled"}, ["console", "file"]),
        (["tensorboard", "file"], {}, ["tensorboard", "file"]),
    ],
)
def test_p14_wandb_is_used_only_when_it_needs_no_login(
    asked: list[str], environment: dict[str, str], expected: list[str]
) -> None:
    assert loggers(asked, environment) == expected


def test_p14_a_refusal_by_wandb_does_not_end_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One that it takes has the axes and facts of the other engine's, and gets what it lacks of a killed run."""
    wandb = MagicMock(errors=SimpleNamespace(Error=ValueError), run=SimpleNamespace(step=2))
    verls = MagicMock(side_effect=[ValueError("invalid\nkey"), None, None])
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setenv("WANDB_DIR", str(tmp_path / "study/seed3/rl-level2"))
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(tmp_path / "metrics.jsonl"))
    rows = [{"step": step, "critic/score/mean": step / 4} for step in (1, 2, 3)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    start = metrics.without_wandb_if_it_fails(verls)
    start(SimpleNamespace(), "project", "refused", ["console", "wandb", "file"])
    assert [made.args[3] for made in verls.call_args_list] == [["console", "wandb", "file"], ["console", "file"]]
    assert capsys.readouterr().out == "wandb is left out: invalid key\n"
    assert not wandb.mock_calls
    start(SimpleNamespace(), "project", "run", "wandb")
    axes = {"step_metric": "compute/flops", "summary": "last,max"}
    assert verls.call_args.args[3] == ["wandb"]
    assert wandb.define_metric.mock_calls == [call("val-core/*", **axes), call("val-aux/*", **axes)]
    facts = wandb.config.update.call_args.args[0]["facts"]
    assert (facts["study"], facts["seed"], facts["arm"], "code" in facts) == ("study", "3", "rl-level2", True)
    assert wandb.log.mock_calls == [call({"critic/score/mean": step / 4}, step=step) for step in (2, 3)]


def test_a_loss_that_is_no_number_or_gradients_that_stay_none() -> None:
    watch = metrics.NumberWatch()
    norms = (math.inf, 1.0, math.nan, math.inf)
    assert [watch.problem(1.0, norm, step) for step, norm in enumerate(norms, 1)] == [None] * 4
    assert "no update since step 2" in (watch.problem(1.0, math.nan, 5) or "")
    assert "the loss is nan at step 6" in (watch.problem(math.nan, 1.0, 6) or "")


GRPO = (
    "(TaskRunner pid=1) step:7 - critic/score/mean:0.25 - actor/grad_norm:np.float64(1.5) - "
    "response_length/mean:31.2 - timing_s/step:4.25 - val-core/string-heldout-level2/acc/mean@1:0.375 - "
    "val-aux/string-heldout-level2/wrong/mean@1:0.1\n"
)
BEHIND_A_BAR = "Epoch 2/5:  18%|█▊  | 8/44 [00:08<00:36,  1.01s/it]step:53 - train/loss:0.0203 - train/lr:1e-05\n"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (GRPO, "step 7/99  reward 0.25  gradient 1.5  tokens 31.2  seconds 4.25  string-heldout-level2 38 %"),
        (BEHIND_A_BAR, "step 53/99  loss 0.0203"),
        ("step:3 - train/loss:nan\n", "step 3/99  loss nan"),
        ("WARNING something about NUMA\n", None),
        ("Epoch 1/5: 100%|██████████| 44/44 [00:44<00:00]\n", None),
    ],
)
def test_a_step_is_a_short_line_and_other_lines_are_for_the_log(line: str, shown: str | None) -> None:
    assert StepLines(99).read(line) == shown


def test_time_left_follows_the_steps_seen() -> None:
    lines = StepLines(10)
    lines.read("step:1 - train/loss:1.0\n")
    shown = lines.read("step:2 - train/loss:0.5\n")
    assert shown is not None
    assert re.search(r" \d+:\d\d left$", shown)


def test_levels_come_in_order_and_a_validation_is_no_step() -> None:
    lines = StepLines(10)
    accuracies = " - ".join(f"val-core/string-heldout-level{level}/acc/mean@1:0.5" for level in (10, 2, 1))
    shown = lines.read(f"step:0 - {accuracies}\n")
    assert shown is not None
    assert [word for word in shown.split() if "level" in word] == [f"string-heldout-level{n}" for n in (1, 2, 10)]
    assert "left" not in (lines.read("step:1 - train/loss:1.0\n") or "left")
