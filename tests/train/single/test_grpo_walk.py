"""The files that a reader goes through from a problem to the update: those whose functions a step really calls."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runs import settings

import compositionality
from compositionality.data.problems import iterate_problems, read_problems
from compositionality.reward.judge import judge_response
from compositionality.tasks.registry import known_task
from compositionality.train.engines import train_on_rank
from compositionality.train.grpo import GrpoTrainer

ROOT = Path(compositionality.__file__).parent


class Walk:
    """Notes the files of the package whose functions are called while a function runs."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def follow(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def followed(*words: Any, **named: Any) -> Any:
            sys.setprofile(self._note)
            try:
                return function(*words, **named)
            finally:
                sys.setprofile(None)

        return followed

    def _note(self, frame: Any, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            self.files.add(path.relative_to(ROOT).as_posix())


def test_a_step_is_read_in_sixteen_files_and_a_verdict_in_six(small, tmp_path, monkeypatch) -> None:
    step, verdict = Walk(), Walk()
    for name in ("collect", "update", "sync_weights"):
        monkeypatch.setattr(GrpoTrainer, name, step.follow(getattr(GrpoTrainer, name)))
    train_on_rank(settings(small, tmp_path / "run", "trainer.steps=1"))
    problem = next(
        iterate_problems(read_problems(small / "train.parquet"))
    )  # judged in a process of its own, which is not followed
    task = known_task(problem.data_source)
    right = verdict.follow(judge_response)(problem.data_source, task.gold(problem), problem.ground_truth)
    assert right.score == 1
    assert {"train/grpo.py", "train/policy.py", "reward/pool.py", "rollout/sampler/sampler.py"} <= step.files
    assert "tasks/string/wording.py" in verdict.files
    assert len(step.files) <= 16, sorted(step.files)
    assert len(verdict.files) <= 6, sorted(verdict.files)
