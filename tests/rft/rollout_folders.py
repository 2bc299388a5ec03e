"""Problem files and rollout folders made by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.rollout.store import SCHEMA, STEP
from compositionality.types import Problem


def problem(index: int, prompt: str | None = None, level: int = 1, functions: Sequence[str] = ("func_3",)) -> Problem:
    truth = json.dumps({"ref_input": {"x": "ba"}, "ref_output": "ab", "style": "compact"})
    return Problem(
        data_source=f"string-trained-level{level}",
        level=level,
        group="trained",
        prompt=f"func_3:{index}" if prompt is None else prompt,
        ground_truth=truth,
        index=index,
        metadata={"seed": 0, "functions": list(functions)},
    )


def problem_file(path: Path, problems: Sequence[Problem]) -> Path:
    write_table(to_table(problems, "train"), path)
    return path


def answer(number: int, sample: int, response: str, reason: str = "correct", **changes: Any) -> dict[str, Any]:
    row = {
        "problem": number,
        "sample": sample,
        "response": response,
        "n_tokens": len(response),
        "finish_reason": "stop",
        "score": float(reason == "correct"),
        "reason": reason,
        "answer": response,
    }
    return {**row, **changes}


def rollout_folder(
    path: Path, problems: Path, rows: Sequence[dict[str, Any]], rows_per_shard: int = 1000, step: str = STEP
) -> Path:
    recipe = Recipe(step, {"n_samples": 2}, {"problems": problems})
    with new_artefact(path, recipe) as partial:
        for shard, start in enumerate(range(0, len(rows), rows_per_shard)):
            table = pa.Table.from_pylist(list(rows[start : start + rows_per_shard]), schema=SCHEMA)
            write_table(table, partial / f"shard-{shard:05d}.parquet")
    return path
