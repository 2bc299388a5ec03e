"""Problem rows: verl's RL schema, so that verl, TRL and any other reader take them as they are."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.tasks.registry import check_ground_truth
from compositionality.tasks.truth import truth_text
from compositionality.types import Problem

COLUMNS = ("data_source", "prompt", "ability", "reward_model", "extra_info")
"""verl's RL schema. Files of ours have ``level`` and ``group`` beside them; see ``with_level_and_group``."""
BATCH = 8192
GROUPS = ("trained", "heldout", "ood")
_LEVEL = re.compile(r"[-_ ]*(level|depth)$")
_ENDS_IN_NUMBER = re.compile(r"(.*?)(\d*)", re.DOTALL)
MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))


def to_table(problems: Sequence[Problem], split: str) -> pa.Table:
    """Rows of the RL schema with ``level`` and ``group``; ``extra_info``: index, split and the task's own metadata.

    A task whose problems name a split of their own in the metadata has that instead.
    """
    columns: dict[str, list[Any]] = {
        "index": [problem.index for problem in problems],
        "split": [split] * len(problems),
    }
    for name in problems[0].metadata if problems else ():
        columns[name] = [problem.metadata[name] for problem in problems]
    truths = [problem.ground_truth for problem in problems]
    return pa.table(
        {
            "data_source": [problem.data_source for problem in problems],
            "level": pa.array([problem.level for problem in problems], pa.int32()),
            "group": pa.array([problem.group for problem in problems], pa.string()),
            "prompt": _one_turn([problem.prompt for problem in problems]),
            "ability": ["reasoning"] * len(problems),
            "reward_model": _structs({"style": ["rule"] * len(truths), "ground_truth": truths}),
            "extra_info": _structs(columns),
        }
    )


def problem_of(row: Mapping[str, Any], number: int = 0) -> Problem:
    """A row of ``read_problems`` as a ``Problem``: the last turn is its prompt, ``extra_info`` its metadata.

    ``number``, the place in the file, is the index of a row that has none of its own.
    """
    metadata = dict(row["extra_info"] or {})
    index = metadata.get("index")
    return Problem(
        data_source=row["data_source"],
        level=row["level"],
        group=row["group"],
        prompt=row["prompt"][-1]["content"],
        ground_truth=row["reward_model"]["ground_truth"],
        index=number if index is None else index,
        metadata=metadata,
    )


def iterate_problems(table: pa.Table) -> Iterator[Problem]:
    """The problems of a table of ``read_problems``, in its order."""
    number = 0
    for batch in table.to_batches(max_chunksize=BATCH):
        for row in batch.to_pylist():
            yield problem_of(row, number)
            number += 1


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
    table = with_level_and_group(read_table(path, COLUMNS, optional=("level", "group")))
    sources = map(str, table["data_source"].to_pylist())
    truths = _truths(path, table)
    for row, (data_source, truth) in enumerate(zip(sources, truths, strict=True)):
        try:
            truths[row] = truth_text(truth)
            check_ground_truth(data_source, truths[row])
        except UserError as error:
            raise UserError(f"{path}: row {row}: {error}") from error
    return _with_truths(table, truths)


def with_level_and_group(table: pa.Table) -> pa.Table:
    """The table with the columns ``level`` and ``group``; where a file of others lacks them they are inferred."""
    if {"level", "group"} <= set(table.column_names):
        return table
    sources, infos = table["data_source"].to_pylist(), table["extra_info"].to_pylist()
    found = [level_and_group(source, info) for source, info in zip(sources, infos, strict=True)]
    columns = {"level": pa.array([level for level, _ in found], pa.int32()), "group": [group for _, group in found]}
    for name, values in columns.items():
        if name not in table.column_names:
            table = table.append_column(name, [values])
    return table


def level_and_group(data_source: str, extra_info: Mapping[str, Any] | None = None) -> tuple[int, str]:
    """Level and group of a row that has no such columns: the one place where they are read out of a name.

    The level is ``extra_info``'s level or depth, else the number that ``data_source`` ends in, else 0; the group is
    ``extra_info``'s, else the one of ``GROUPS`` that ``data_source`` names, else ``data_source`` without its level.
    """
    info = extra_info if isinstance(extra_info, Mapping) else {}
    name, number = _ENDS_IN_NUMBER.fullmatch(data_source).groups()  # type: ignore[union-attr]
    level = next((info[key] for key in ("level", "depth") if info.get(key) is not None), number or 0)
    group = info.get("group") or next((word for word in GROUPS if word in name), _LEVEL.sub("", name))
    return int(level), str(group)


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
