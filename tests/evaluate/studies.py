"""Evaluations made by hand: counts in, the folder that ``evaluate`` would have written out."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.data.parquet import write_table
from compositionality.data.problems import level_and_group, to_table
from compositionality.evaluate import accuracy
from compositionality.evaluate.accuracy.run import EvaluateSettings
from compositionality.rollout.shards import SCHEMA
from compositionality.tasks import Problem

Outcomes = Mapping[str, Mapping[str, Sequence[str]]]
"""Reasons by model and data source, one answer a problem; every model has the same problems."""


def task_of(source: str) -> str:
    return source.partition("-")[0]


def problem_file(path: Path, sizes: Mapping[str, int], tag: str = "") -> Path:
    """A problem file with so many problems of every data source."""
    names = [source for source, size in sizes.items() for _ in range(size)]
    truths = {"string": json.dumps({"ref_output": "a"}), "countdown": json.dumps({"target": 3, "numbers": [1, 2]})}
    made = [
        Problem(source, *level_and_group(source), f"p{index}{tag}", truths[task_of(source)], index, {"functions": []})
        for index, source in enumerate(names)
    ]
    write_table(to_table(made, "test"), path)
    return path


def evaluation(folder: Path, problems: Mapping[str, Path], outcomes: Outcomes, seed: int = 0, **changes: Any) -> Path:
    """The tables of one seed, through the code that evaluates; ``outcomes`` hold the data sources of every file."""
    settings = EvaluateSettings(
        models=list(outcomes), problems=[f"{name}:{path}" for name, path in problems.items()], output=folder,
        engine="openai", base_url="http://x", seed=seed, **changes,
    )  # fmt: skip
    folders = {}
    for model, by_source in outcomes.items():
        for name in problems:
            reasons = [reason for source, found in by_source.items() if name in source for reason in found]
            folders[model, name] = _rollouts(folder / "rollouts" / model / name, reasons, seed)
    files = {name: str(path) for name, path in problems.items()}
    recipe = accuracy._recipe(settings, {model: model for model in outcomes}, files, folders)
    accuracy._write_tables(settings, files, folders, recipe)
    accuracy._write_json(folder / "accuracy.parquet", folder / "accuracy.json", force=settings.force)
    return folder / "accuracy.json"


def _rollouts(folder: Path, reasons: Sequence[str], seed: int) -> Path:
    rows = [
        {
            "problem": number, "sample": 0, "response": f"seed {seed}", "tokens": 3, "finish_reason": "stop",
            "score": float(reason == "correct"), "reason": reason, "answer": None,
        }
        for number, reason in enumerate(reasons)
    ]  # fmt: skip
    with new_artefact(folder, Recipe("collect_rollouts", {"seed": seed})) as partial:
        partial.mkdir()
        write_table(pa.Table.from_pylist(rows, schema=SCHEMA), partial / "shard-00000.parquet")
    return folder


def right(n_correct: int, n: int) -> list[str]:
    """The first ``n_correct`` of ``n`` answers are right."""
    return ["correct"] * n_correct + ["wrong"] * (n - n_correct)
