"""Rollouts made by hand for the classification: a problem file of compact string problems, and answers to it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.data.create_problems import create_problems, settings_for
from compositionality.data.parquet import read_table, write_table
from compositionality.evaluate.failures import FailureSettings
from compositionality.rollout.store import shard_table
from compositionality.tasks.registry import task_of
from compositionality.tasks.string.functions import ALIASES
from compositionality.tasks.string.program import chain_of, frozen_call
from compositionality.tasks.string.wording import compact_trace
from compositionality.types import Completion

Answer = Callable[[int, int, str], str]
"""Problem, sample and gold trace → response."""
N_PROBLEMS, SHARD = 24, 16


def problem_file(path: Path, seed: int = 0) -> Path:
    """24 problems of levels 1 to 3, held-out functions."""
    create_problems(
        settings_for(
            "string",
            output=str(path), split="test", seed=seed, count=N_PROBLEMS, levels=[1, 2, 3], functions="heldout",
            style="compact", frozen_parameters=True, alphabet="abcdefghij", input_length=[3, 6], max_length=10,
        )
    )  # fmt: skip
    return path


def gold(row: dict[str, Any]) -> str:
    """The right trace of a problem row."""
    chain = chain_of(frozen_call(ALIASES[name]) for name in reversed(row["extra_info"]["functions"]))
    return compact_trace(chain, row["prompt"][0]["content"].partition(":")[2])


def rollouts(folder: Path, problems: Path, answer: Answer, n_samples: int = 2) -> Path:
    """A folder as ``collect_rollouts`` writes it, in shards that cut through problems."""
    rows = read_table(problems).to_pylist()
    units = [(problem, sample) for problem in range(len(rows)) for sample in range(n_samples)]
    texts = [answer(problem, sample, gold(rows[problem])) for problem, sample in units]
    truths = [(rows[problem]["data_source"], rows[problem]["reward_model"]["ground_truth"]) for problem, _ in units]
    verdicts = [task_of(source).verdict(text, truth) for (source, truth), text in zip(truths, texts, strict=True)]
    groups = [(rows[problem]["level"], rows[problem]["group"]) for problem, _ in units]
    done = [Completion(text, len(text), "stop") for text in texts]
    with new_artefact(folder, Recipe("collect_rollouts", {"folder": folder.name}, {"problems": problems})) as partial:
        partial.mkdir()
        for number, start in enumerate(range(0, len(units), SHARD - 1)):
            part = slice(start, start + SHARD - 1)
            table = shard_table(units[part], groups[part], done[part], verdicts[part])
            write_table(table, partial / f"shard-{number:05d}.parquet")
    return folder


def always_right(problem: int, sample: int, trace: str) -> str:
    return trace


def first_line_only(problem: int, sample: int, trace: str) -> str:
    return trace.split("\n")[0]


def wrong_at_the_end(problem: int, sample: int, trace: str) -> str:
    """Sample 1 is wrong in its last string."""
    return trace + "b" * sample


def evaluation(folder: Path, problems: Path, models: dict[str, Answer]) -> Path:
    """An evaluation's folder: rollouts/MODEL/PROBLEMS."""
    for model, answer in models.items():
        rollouts(folder / "rollouts" / model / "heldout", problems, answer)
    return folder


def settings(home: Path, **changes: Any) -> FailureSettings:
    """Of the evaluation under ``home``."""
    return FailureSettings(**{
        "evaluation": str(home / "run"), "problems": [f"heldout:{home / 'heldout.parquet'}"],
        "output": home / "out", **changes,
    })  # fmt: skip


def rows_of(path: Path) -> list[dict[str, Any]]:
    """A parquet file as dictionaries."""
    return read_table(path).to_pylist()
