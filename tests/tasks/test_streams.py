"""P1 and P2 for the streams of problems of both tasks: pinned, the same on any machine, disjoint by split and seed."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from task_options import COUNTDOWN, GOLDEN, STRING

from compositionality.tasks.draws import SEED_CLASSES, SPLITS, Draws, draw_owned
from compositionality.tasks.registry import find_task

TASKS = {"string": (find_task("string"), STRING, 120), "countdown": (find_task("countdown"), COUNTDOWN, 60)}
"""The task, its options by name, and how many problems a golden digest is of."""


def digest(task: str, options: Any, workers: int = 1, count: int | None = None) -> str:
    """Over everything that a row holds but the group, in the wording that the golden digests were taken over."""
    result = hashlib.sha256()
    for problem in TASKS[task][0].problems(options, "train", 7, count or TASKS[task][2], workers):
        names = ("data_source", "level", "prompt", "ground_truth", "index", "metadata")
        text = f"Problem({', '.join(f'{name}={getattr(problem, name)!r}' for name in names)})"
        result.update(f"({text}, {dict(problem.metadata)!r})".encode())
    return result.hexdigest()


def all_digests() -> list[str]:
    return [digest(task, TASKS[task][1][name])[:16] for task, name in GOLDEN]


@pytest.mark.parametrize(("task", "name"), GOLDEN)
def test_p01_golden_digest(task: str, name: str) -> None:
    assert digest(task, TASKS[task][1][name])[:16] == GOLDEN[task, name]


def test_p01_hash_seed_does_not_matter() -> None:
    script = "import test_streams; print(*test_streams.all_digests())"
    environment = {**os.environ, "PYTHONHASHSEED": "1234", "PYTHONPATH": os.path.dirname(__file__)}  # noqa: PTH120
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == list(GOLDEN.values())


@pytest.mark.parametrize(
    ("task", "options"), [("string", STRING["plain"]), ("countdown", replace(COUNTDOWN["plain"], levels=(3, 4)))]
)
def test_p01_number_of_processes_does_not_matter(task: str, options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compositionality.tasks.stream.ALONE_S", 0.0)
    assert digest(task, options, 2, 900) == digest(task, options, 1, 900)


def test_p02_what_is_drawn_has_one_owner() -> None:
    drawn = [
        {draw_owned(lambda draws: draws.below(300), split, seed, str(name))[0] for name in range(60)}
        for split in SPLITS
        for seed in range(SEED_CLASSES)
    ]
    assert len(set().union(*drawn)) == sum(map(len, drawn))


def test_p01_draws_are_pinned() -> None:
    draws = Draws(b"name")
    assert [draws.below(1000) for _ in range(5)] == [789, 746, 113, 96, 125]
    assert draws.text("abc", 4) == "bcca"


@pytest.mark.parametrize("n", [2, 3, 1000, 55**8, 55**60, 2**600])
def test_draws_are_uniform(n: int) -> None:
    draws = Draws(b"uniform")
    tenths = Counter(draws.below(n) * 2 // n for _ in range(4000))
    assert set(tenths) <= {0, 1}
    assert abs(tenths[0] - 4000 * ((n + 1) // 2) / n) < 4 * 32  # four standard deviations
