"""Starts of the trainers' commands, without what a caller has set for verl, Ray or wandb."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bash_runs import warm_verl

from compositionality.train.launch import descendants, is_alive

ROOT = Path(__file__).resolve().parents[2]
MINUTES = 20


def command(entry_point: str, words: list[str], python: str = sys.executable) -> list[str]:
    return [python, str(ROOT / "examples" / f"{entry_point}.py"), *words]


def train(entry_point: str, words: list[str], code: int = 0, **variables: str) -> str:
    """What a training prints to its end."""
    warm = warm_verl()
    done = subprocess.run(
        command(entry_point, words, warm["PYTHON"]), env={**environment(**variables), **warm}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=60 * MINUTES, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout[-3000:]
    return done.stdout


def kill_when(saved: Callable[[], bool], entry_point: str, words: list[str], out: Path, processes: int) -> None:
    """SIGKILL a training as soon as it has saved; all of its processes, at least so many, must end."""
    log, deadline = out.with_name(f"{out.name}.log"), time.monotonic() + 60 * MINUTES
    with log.open("w") as file:
        process = subprocess.Popen(command(entry_point, words), env=environment(), stdout=file, stderr=file)
    while not saved():
        assert process.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.002)
    below = descendants(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(below) >= processes
    while any(map(is_alive, below)):
        assert time.monotonic() < deadline, "processes were left behind"
        time.sleep(0.05)
    assert not (out / "final").exists(), "killed too late for this test"


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VERL", "WANDB", "RAY"))}
    return {**kept, **variables}
