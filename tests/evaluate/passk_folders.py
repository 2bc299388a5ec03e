"""Problem files and rollout folders with any counts, made without a model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.rollout.store import SCHEMA, STEP
from compositionality.types import Problem

SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_tokens": 64}


def problem_file(path: Path, levels: Sequence[int]) -> Path:
    made = [
        Problem(
            f"string-heldout-level{level}", level, "heldout", f"func_3:{row}", json.dumps({"ref_output": "ab"}), row
        )
        for row, level in enumerate(levels)
    ]
    write_table(to_table(made, "test"), path)
    return path


def rows_of(correct: Sequence[int], n_samples: int) -> list[dict[str, Any]]:
    """The first so many samples of each problem are right."""
    return [
        {
            "problem": problem,
            "sample": sample,
            "response": "ab",
            "n_tokens": 3,
            "finish_reason": "stop",
            "score": float(sample < count),
            "reason": "correct" if sample < count else "wrong",
            "answer": "ab",
        }
        for problem, count in enumerate(correct)
        for sample in range(n_samples)
    ]


def rollout_folder(path: Path, problems: Path, rows: Sequence[dict[str, Any]], **settings: Any) -> Path:
    recipe = Recipe(STEP, {**SAMPLING, **settings}, {"problems": problems})
    with new_artefact(path, recipe) as partial:
        for shard, part in enumerate(np.array_split(np.arange(len(rows)), 2)):
            table = pa.Table.from_pylist([rows[row] for row in part], schema=SCHEMA)
            write_table(table, partial / f"shard-{shard:05d}.parquet")
    return path
