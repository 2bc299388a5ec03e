"""Problem rows: verl's RL schema, so that verl, TRL and any other reader take them as they are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.tasks import Message, Problem
from compositionality.tasks.registry import check_ground_truth
from compositionality.tasks.truth import truth_text

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
    """A problem file; columns, data sources and ground truths are checked, and ground truths are text.

    UserError that names file and row where a judge could not read one.
    """
    table = read_table(path, COLUMNS)
    sources = map(str, table["data_source"].to_pylist())
    truths = _truths(path, table)
    for row, (data_source, truth) in enumerate(zip(sources, truths, strict=True)):
        try:
            truths[row] = truth_text(truth)
            check_ground_truth(data_source, truths[row])
        except UserError as error:
            raise UserError(f"{path}: row {row}: {error}") from error
    return _with_truths(table, truths)


def _truths(path: Path, table: pa.Table) -> list[Any]:
    """The ground truths as the file holds them."""
    kind = table["reward_model"].type
    if not pa.types.is_struct(kind) or kind.get_field_index("ground_truth") < 0:
        raise UserError(f"{path}: reward_model has no ground_truth; give rows of verl's RL schema")
    truths: list[Any] = pc.struct_field(table["reward_model"], "ground_truth").to_pylist()
    return truths


def _with_truths(table: pa.Table, truths: list[str]) -> pa.Table:
    """The table as it is if its ground truths are text; else ``reward_model`` with these in their place."""
    column = table["reward_model"]
    kind = column.type.field("ground_truth").type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return table
    columns = {
        field.name: truths if field.name == "ground_truth" else pc.struct_field(column, field.name).combine_chunks()
        for field in column.type
    }
    return table.set_column(table.schema.get_field_index("reward_model"), "reward_model", _structs(columns))
