"""Problem rows in verl's RL schema, which verl, TRL and other readers take unchanged."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compositionality.data.parquet import JSON_LINES, column_names, read_table
from compositionality.data.row_format import PLACEHOLDER, RL_SCHEMA, RowFormat
from compositionality.errors import UserError
from compositionality.tasks.registry import task_of
from compositionality.tasks.task import row_info
from compositionality.types import Problem

COLUMNS = ("data_source", "prompt", "ability", "reward_model", "extra_info")
"""verl's RL schema. Our files also have ``level`` and ``group``; see ``with_level_and_group``."""
BATCH = 8192
GROUPS = ("trained", "heldout", "ood")
COLUMN_KEYS = "; name your columns by prompt_key or prompt_template, truth_key, and reward_fn_key or source"
_LEVEL = re.compile(r"[-_ ]*(level|depth)$")
_ENDS_IN_NUMBER = re.compile(r"(.*?)(\d*)", re.DOTALL)
ROLES = ("system", "developer", "user", "assistant", "tool", "function", "ipython")
MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))


def to_table(problems: Sequence[Problem], split: str) -> pa.Table:
    """Return rows of the RL schema with ``level``, ``group``; ``extra_info``: index, split, the task's metadata.

    A split in the metadata of the problems replaces ``split``.
    """
    columns: dict[str, list[Any]] = {"index": [problem.index for problem in problems]}
    columns["split"] = [split] * len(problems)
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
    """Return a row of ``read_problems`` as a ``Problem``; ``number`` is its index if the row has none."""
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
    """Yield the problems of a table of ``read_problems`` in order."""
    number = 0
    for batch in table.to_batches(max_chunksize=BATCH):
        for row in batch.to_pylist():
            yield problem_of(row, number)
            number += 1


def _structs(columns: Mapping[str, list[Any]]) -> pa.StructArray:
    """Return rows as structs, built column by column: three times as fast as from dictionaries."""
    return pa.StructArray.from_arrays([pa.array(values) for values in columns.values()], names=list(columns))


def _one_turn(prompts: list[Any]) -> pa.ListArray:
    """Return a chat of one user turn for each prompt."""
    turns = _structs({"role": ["user"] * len(prompts), "content": prompts})
    offsets = pa.array(range(len(prompts) + 1), pa.int32())
    return pa.ListArray.from_arrays(offsets, turns).cast(MESSAGES)


def read_problems(path: Path, row_format: RowFormat | None = None) -> pa.Table:
    """Read a problem file, with ground truths as text. UserError names a row with an invalid prompt or truth."""
    fix = "; give rows of verl's RL schema" if row_format is None else COLUMN_KEYS
    row_format = row_format or RL_SCHEMA
    table = _read_columns(path, row_format, fix)
    if row_format.any_source:
        _check_column(path, row_format.source_key, table["data_source"], pa.string())
    else:
        _check_sources(path, table["data_source"])
    kind = table["reward_model"].type
    if not pa.types.is_struct(kind) or kind.get_field_index("ground_truth") < 0:
        raise UserError(f"{path}: reward_model has no ground_truth; give rows of verl's RL schema")
    info = table["extra_info"].type
    if not (pa.types.is_struct(info) or pa.types.is_map(info) or pa.types.is_null(info)):
        raise UserError(f"{path}: column extra_info is {info}, not a struct; correct it or leave it out")
    _check_prompts(path, table["prompt"])
    if row_format.any_source:
        return with_level_and_group(table, path, inferred=False)
    truths = pc.struct_field(table["reward_model"], "ground_truth").to_pylist()
    infos = table["extra_info"].to_pylist()
    for row, (data_source, truth) in enumerate(zip(table["data_source"].to_pylist(), truths, strict=True)):
        task = task_of(data_source)
        try:
            truths[row] = task.row_truth(truth, row_info(infos[row]))
            task.parse_truth(truths[row])
        except UserError as error:
            raise UserError(f"{path}: row {row}: {error}") from error
    return _replace_truths(with_level_and_group(table, path), truths)


def say_what_is_left_out(path: Path, row_format: RowFormat | None = None) -> None:
    """Print which columns of a problem file ``read_problems`` ignores."""
    row_format = row_format or RL_SCHEMA
    used = {*row_format.prompt_columns(), *row_format.truth_key, row_format.source_key, *COLUMNS, "level", "group"}
    if foreign := ", ".join(name for name in column_names(path) if name not in used):
        print(f"{path}: its columns {foreign} are ignored; verl's RL schema does not have them", file=sys.stderr)


def is_rl_schema(path: Path, row_format: RowFormat) -> bool:
    """Return whether the file can be read as verl's RL schema without changes."""
    if path.suffix == JSON_LINES or replace(row_format, any_source=False) != RL_SCHEMA:
        return False
    return "prompt" in column_names(path) and _is_list(pq.read_schema(path).field("prompt").type)


def _read_columns(path: Path, row_format: RowFormat, fix: str) -> pa.Table:
    """Return the columns of verl's RL schema, and ``level`` and ``group`` if the file has them."""
    source, truth_key = row_format.source_key, list(row_format.truth_key)
    names = [*row_format.prompt_columns(), *(truth_key or ["reward_model"]), *([] if row_format.source else [source])]
    optional = ("ability", "extra_info", "level", "group", source)
    unread = [name for name in optional if name not in names]
    raw = read_table(path, list(dict.fromkeys(names)), optional=unread, fix=fix)
    if row_format.source and source in raw.column_names:
        raise UserError(f"{path}: has a column {source}; leave source={row_format.source} out, or drop that column")
    rows = raw.num_rows
    columns = {
        "data_source": [row_format.source] * rows if row_format.source else raw[source],
        "prompt": _chats(path, raw, row_format),
        "ability": ["reasoning"] * rows,
        "reward_model": _reward_model(raw, truth_key) if truth_key else raw["reward_model"],
        "extra_info": _structs({"index": list(range(rows))}),
    }
    columns |= {name: raw[name] for name in ("ability", "extra_info", "level", "group") if name in raw.column_names}
    return pa.table(columns)


def _chats(path: Path, raw: pa.Table, row_format: RowFormat) -> pa.ChunkedArray | pa.ListArray:
    """Return a chat for each row: the column itself; or its text, or the filled template, as a user's turn."""
    names, template = row_format.prompt_columns(), row_format.template
    if template is None:
        column = raw[names[0]]
        return _one_turn([text or None for text in column.to_pylist()]) if _is_text(column.type) else column
    rows = raw.select(names).to_pylist()
    for number, row in enumerate(rows):
        for name in names:
            if row[name] is None:
                raise UserError(f"{path}: row {number}: {name} is empty but in prompt_template; drop the row")
    return _one_turn([_fill(template, row) for row in rows])


def _fill(template: str, row: Mapping[str, Any]) -> str:
    return PLACEHOLDER.sub(lambda match: str(row[match[1]]), template)


def _reward_model(raw: pa.Table, names: list[str]) -> pa.StructArray:
    """Return verl's ``reward_model`` with the ground truth from one column, or from several as a struct."""
    columns = [raw[name].combine_chunks() for name in names]
    truths = columns[0] if len(names) == 1 else pa.StructArray.from_arrays(columns, names=names)
    return pa.StructArray.from_arrays([pa.array(["rule"] * raw.num_rows), truths], names=["style", "ground_truth"])


def with_level_and_group(table: pa.Table, path: Path, *, inferred: bool = True) -> pa.Table:
    """Return the table with ``level`` and ``group``; missing ones are ``inferred``, or else 0 and *all*."""
    columns = {"level": pa.int32(), "group": pa.string()}
    missing = [name for name in columns if name not in table.column_names]
    for name in columns.keys() - set(missing):
        _check_column(path, name, table[name], columns[name])
    if not missing:
        return table
    values: dict[str, list[Any]] = {name: [] for name in columns}
    sources, infos = table["data_source"].to_pylist(), table["extra_info"].to_pylist()
    for row, (source, info) in enumerate(zip(sources, infos, strict=True)):
        try:
            level, group = level_and_group(source, info) if inferred else (0, "all")
        except UserError as error:
            raise UserError(f"{path}: row {row}: {error}") from error
        values["level"].append(level)
        values["group"].append(group)
    for name in missing:
        table = table.append_column(name, pa.array(values[name], columns[name]))
    return table


def level_and_group(data_source: str, extra_info: Mapping[str, Any] | None = None) -> tuple[int, str]:
    """Return level and group of a row without such columns: the only place that reads them from a name.

    The level is ``extra_info``'s level or depth, else the number at the end of ``data_source``, else 0; the group is
    ``extra_info``'s, else the word of ``GROUPS`` in ``data_source``, else ``data_source`` without its level.
    """
    info = extra_info if isinstance(extra_info, Mapping) else {}
    name, number = _ENDS_IN_NUMBER.fullmatch(data_source).groups()  # type: ignore[union-attr]
    level = next((info[key] for key in ("level", "depth") if info.get(key) is not None), number or 0)
    try:
        depth = int(level)
        if not 0 <= depth < 2**31 or depth != float(level):
            raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"level {level!r} is not a whole number from 0; give the problem's depth, or none") from error
    group = info.get("group") or next((word for word in GROUPS if word in name), _LEVEL.sub("", name))
    return depth, str(group)


def _check_sources(path: Path, sources: pa.ChunkedArray) -> None:
    """Raise UserError that names the first row with an unknown ``data_source``."""
    for source in sources.unique():
        try:
            task_of(str(source))
        except UserError as error:
            row = pc.index(pc.is_null(sources), True) if source.as_py() is None else pc.index(sources, source)
            raise UserError(f"{path}: row {row}: {error}") from error


def _check_prompts(path: Path, prompts: pa.ChunkedArray) -> None:
    """Raise UserError that names the first row whose prompt is not a list of turns with role and text content."""
    turn = "a list of turns, [{role: user, content: text}, …], or text"
    kind = prompts.type.value_type if _is_list(prompts.type) else None
    if kind is None or not pa.types.is_struct(kind):
        raise UserError(f"{path}: row 0: the prompt is {prompts.type}; give {turn}")
    for name in ("role", "content"):
        if kind.get_field_index(name) < 0 or not _is_text(kind.field(name).type):
            raise UserError(f"{path}: row 0: the prompt's turns have no {name} of text; give {turn}")
    for row, chat in enumerate([] if _are_chats(prompts) else prompts.to_pylist()):
        if not chat:
            raise UserError(f"{path}: row {row} has an empty prompt; give {turn}")
        for name in ("role", "content"):
            if any(message is None or message[name] is None for message in chat):
                raise UserError(f"{path}: row {row}: a turn of the prompt has no {name}; give {turn}")
        if unknown := {message["role"] for message in chat} - {*ROLES}:
            raise UserError(f"{path}: row {row}: a turn's role is {min(unknown)!r}, none of {', '.join(ROLES)}")
        if chat[-1]["role"] == "assistant":
            raise UserError(f"{path}: row {row}: the prompt ends with an assistant's turn; leave that out")


def _are_chats(prompts: pa.ChunkedArray) -> bool:
    """Check quickly that all prompts have turns with known role and content, the last of them not an assistant's."""
    for chunk in prompts.chunks:
        lengths, turns = pc.list_value_length(chunk), chunk.flatten()
        roles, contents = (pc.struct_field(turns, name) for name in ("role", "content"))
        if lengths.null_count or roles.null_count or contents.null_count or pc.index(lengths, 0).as_py() >= 0:
            return False
        ends = roles.cast(pa.large_string()).take(pc.subtract(pc.cumulative_sum(lengths), 1))
        if pc.index(ends, "assistant").as_py() >= 0 or not pc.all(pc.is_in(roles, pa.array(ROLES, roles.type))).as_py():
            return False
    return True


def _check_column(path: Path, name: str, column: pa.ChunkedArray, kind: pa.DataType) -> None:
    """Raise UserError for a column of the wrong type, or with an empty cell."""
    if not (pa.types.is_integer(column.type) if pa.types.is_integer(kind) else _is_text(column.type)):
        raise UserError(f"{path}: column {name} is {column.type}, not {kind}; correct it or leave it out")
    least = " from 0" if pa.types.is_integer(kind) else ""
    is_bad = pc.fill_null(pc.less(column, 0), True) if least else pc.is_null(column)
    if (row := pc.index(is_bad, True).as_py()) >= 0:
        raise UserError(f"{path}: row {row}: {name} must be {kind}{least} in every row; correct it or leave it out")


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _replace_truths(table: pa.Table, truths: list[str]) -> pa.Table:
    """Replace the ground truths in ``reward_model`` unless they are text already."""
    column = table["reward_model"]
    if _is_text(column.type.field("ground_truth").type):
        return table
    columns = {
        part.name: truths if part.name == "ground_truth" else pc.struct_field(column, part.name).combine_chunks()
        for part in column.type
    }
    return table.set_column(table.schema.get_field_index("reward_model"), "reward_model", _structs(columns))
