"""Problem rows: verl's RL schema, so that verl, TRL and any other reader take them as they are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.tasks import Message, Problem
from compositionality.tasks.registry import find_judge

COLUMNS = ("data_source", "prompt", "ability", "reward_model", "extra_info")
MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))


def user_turn(prompt: str) -> list[Message]:
    """A prompt as a chat of one user message."""
    return [{"role": "user", "content": prompt}]


def to_table(problems: Sequence[Problem], split: str) -> pa.Table:
    """Rows of the RL schema; ``extra_info`` holds index, split, depth (level) and the task's own metadata."""
    columns: dict[str, list[Any]] = {
        "index": [problem.index for problem in problems],
        "split": [split] * len(problems),
        "depth": [problem.level for problem in problems],
    }
    for name in problems[0].metadata if problems else ():
        columns[name] = [problem.metadata[name] for problem in problems]
    truths = [problem.ground_truth for problem in problems]
    return pa.table(
        {
            "data_source": [problem.data_source for problem in problems],
            "prompt": _one_turn([problem.prompt for problem in problems]),
            "ability": ["reasoning"] * len(problems),
            "reward_model": _structs({"style": ["rule"] * len(truths), "ground_truth": truths}),
            "extra_info": _structs(columns),
        }
    )


def _structs(columns: Mapping[str, list[Any]]) -> pa.StructArray:
    """Rows as structs, made column by column: three times as fast as from dictionaries."""
    return pa.StructArray.from_arrays([pa.array(values) for values in columns.values()], names=list(columns))


def _one_turn(prompts: list[str]) -> pa.ListArray:
    """One list of one user message per prompt."""
    turns = _structs({"role": ["user"] * len(prompts), "content": prompts})
    offsets = pa.array(range(len(prompts) + 1), pa.int32())
    return pa.ListArray.from_arrays(offsets, turns).cast(MESSAGES)


def read_problems(path: Path) -> pa.Table:
    """A problem file, its columns and data sources checked."""
    table = read_table(path, COLUMNS)
    for data_source in table["data_source"].unique().to_pylist():
        try:
            find_judge(data_source)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error
    return table
