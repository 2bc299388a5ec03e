"""Starts of the trainers' commands, without what a caller has set for verl, Ray or wandb."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bash_runs import warm_verl
from held import held_verl, kill_once
from warm_python import CHILDREN

ROOT = Path(__file__).resolve().parents[2]
MINUTES = 20


def command(entry_point: str, words: list[str], python: str) -> list[str]:
    return [python, str(ROOT / "examples" / f"{entry_point}.py"), *words]


def train(entry_point: str, words: list[str], code: int = 0, **variables: str) -> str:
    """What a training prints to its end; SFT's judge nothing, so all that they start may be warm."""
    warm = warm_verl() | ({CHILDREN: "1"} if entry_point == "train_sft" else {})
    done = subprocess.run(
        command(entry_point, words, warm["PYTHON"]), env={**environment(**variables), **warm}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=60 * MINUTES, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout[-3000:]
    return done.stdout


def kill_at(step: int, saved: Callable[[], bool], entry_point: str, words: list[str], out: Path) -> None:
    """SIGKILL a training of verl, held at the checkpoint of ``step``, once it has saved."""
    start = warm_verl() if entry_point == "train_sft" else {"PYTHON": sys.executable}
    log, variables = out.with_name(f"{out.name}.log"), {**environment(**held_verl(step)), **start}
    below = kill_once(saved, command(entry_point, words, start["PYTHON"]), log, variables)
    assert below >= 3  # guard, torchrun or Ray's driver, trainer


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VERL", "WANDB", "RAY"))}
    return {**kept, **variables}
