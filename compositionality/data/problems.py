"""Problem rows: verl's RL schema, so that verl, TRL and any other reader take them as they are."""

from collections.abc import Sequence
from pathlib import Path

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
    return pa.table(
        {
            "data_source": [problem.data_source for problem in problems],
            "prompt": pa.array([user_turn(problem.prompt) for problem in problems], MESSAGES),
            "ability": ["reasoning"] * len(problems),
            "reward_model": [{"style": "rule", "ground_truth": problem.ground_truth} for problem in problems],
            "extra_info": [
                {"index": problem.index, "split": split, "depth": problem.level, **problem.metadata}
                for problem in problems
            ],
        }
    )


def read_problems(path: Path) -> pa.Table:
    """A problem file, its columns and data sources checked."""
    table = read_table(path, COLUMNS)
    for data_source in table["data_source"].unique().to_pylist():
        try:
            find_judge(data_source)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error
    return table
