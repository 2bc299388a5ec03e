"""Several data sets joined to one: problem files, or SFT data (files, or folders of train and test)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.data.artefact import (
    Recipe,
    check_target,
    exclusive,
    is_done,
    is_to_be_checked,
    name_inputs,
    new_artefact,
)
from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonEmptyStr
from compositionality.rft.rows import prompt_key
from compositionality.types import Message

STEP = "merge_data"
SPLITS = ("train.parquet", "test.parquet")


@dataclass
class MergeSettings:
    """Settings of ``merge_data``."""

    inputs: list[str] = REQUIRED  # two or more files, or folders of train and test
    output: NonEmptyStr = REQUIRED  # of the same kind
    allow_shared_prompts: bool = False  # keep rows whose prompt an earlier input has
    force: bool = False  # replace a result that was made from something else


def merge_data(settings: MergeSettings) -> Path:
    """Join the inputs in the order given: files to one file, folders of train and test to one such folder."""
    inputs, output = named_inputs(settings), Path(settings.output)
    recipe = _recipe(settings, inputs)
    with exclusive(output):
        if is_done(output, recipe, force=settings.force):
            print(f"{output} is already there")
            return output
        parts = checked_parts(inputs)
        facts: dict[str, Any] = {"shared_prompts": check_prompts(parts, allow=settings.allow_shared_prompts)}
        with new_artefact(output, recipe, facts) as partial:
            facts["rows"] = {name or "all": _join(paths, partial / name) for name, paths in parts.items()}
    print(f"{output}: {', '.join(f'{rows:,} rows ({name})' for name, rows in facts['rows'].items())}")
    return output


def check(settings: MergeSettings) -> None:
    """Dry run: check the settings, the place of the result, and columns and prompts of the inputs if all exist."""
    inputs = named_inputs(settings)
    check_target(Path(settings.output), _recipe(settings, inputs), force=settings.force)
    if is_to_be_checked(*inputs, dry=True):
        check_prompts(checked_parts(inputs), allow=settings.allow_shared_prompts)


def _recipe(settings: MergeSettings, inputs: Sequence[Path]) -> Recipe:
    names = name_inputs("inputs", inputs)  # in the order of the rows
    kept = {"allow_shared_prompts": settings.allow_shared_prompts, "inputs": names}
    return Recipe(STEP, kept, dict(zip(names, inputs, strict=True)))


def named_inputs(settings: MergeSettings) -> list[Path]:
    """The inputs. UserError for less than two, or one that is there twice."""
    inputs = [Path(path) for path in settings.inputs]
    if len(inputs) < 2:
        raise UserError("inputs: give two or more files or folders, as inputs=[A,B]")
    twice = next((path for number, path in enumerate(inputs) if path in inputs[:number]), None)
    if twice is not None:
        raise UserError(f"inputs: {twice} is there twice; give each file or folder once")
    return inputs


def checked_parts(inputs: Sequence[Path]) -> dict[str, list[Path]]:
    """Which files make which file of the result. UserError where their columns differ."""
    parts = _parts(inputs)
    for paths in parts.values():
        check_schemas(paths)
    return parts


def _parts(inputs: Sequence[Path]) -> dict[str, list[Path]]:
    """Which files make which file of the result ("" is the result itself)."""
    if not any(path.is_dir() for path in inputs):
        return {"": list(inputs)}
    for path in inputs:
        if not (path / SPLITS[0]).is_file():
            raise UserError(f"{path}: no {SPLITS[0]} in it; give files only, or folders of train and test only")
    parts = {name: [path / name for path in inputs if (path / name).is_file()] for name in SPLITS}
    return {name: paths for name, paths in parts.items() if paths}


def check_prompts(parts: dict[str, list[Path]], *, allow: bool) -> int:
    """The number of rows whose prompt another input has too; UserError unless allowed, and always across splits."""
    owners: dict[str, tuple[str, Path]] = {}
    shared = 0
    for split, paths in parts.items():
        for path in paths:
            for row, key in enumerate(_keys(path)):
                owner_split, owner = owners.setdefault(key, (split, path))
                if owner == path:
                    continue
                if owner_split != split:
                    raise UserError(f"{path}: row {row} has a prompt that {owner} trains on; filter both as one set")
                if not allow:
                    raise UserError(
                        f"{path}: row {row} has a prompt of {owner} too; drop it or set allow_shared_prompts=true"
                    )
                shared += 1
    return shared


def _keys(path: Path) -> Iterator[str]:
    """The prompt's identity for every row: of SFT rows the turns before the response, of problem rows the prompt."""
    table = read_table(path)
    column = "messages" if "messages" in table.column_names else "prompt"
    if column not in table.column_names:
        raise UserError(f"{path}: has neither column messages nor prompt; it has {', '.join(table.column_names)}")
    for row, turns in enumerate(table[column].to_pylist()):
        messages: Any = [{"role": "user", "content": turns}] if isinstance(turns, str) else turns
        if not isinstance(messages, list) or not all(map(_is_turn, messages)):
            messages = []
        prompt: list[Message] = messages[:-1] if column == "messages" else messages
        if not prompt:
            raise UserError(f"{path}: row {row} has no prompt in its column {column}; make the file again")
        yield prompt_key(prompt)


def _is_turn(turn: object) -> bool:
    return isinstance(turn, dict) and all(isinstance(turn.get(key), str) for key in ("role", "content"))


def _join(paths: Sequence[Path], output: Path) -> int:
    """Write the rows of ``paths`` one after the other; returns their number."""
    schema = read_table(paths[0]).schema.remove_metadata()
    output.parent.mkdir(parents=True, exist_ok=True)
    total = 0
    with pq.ParquetWriter(output, schema, compression="zstd") as writer:
        for path in paths:
            table = read_table(path).replace_schema_metadata()
            writer.write_table(table)
            total += table.num_rows
    return total


def check_schemas(paths: Sequence[Path]) -> None:
    """UserError where the columns of a file differ from those of the first."""
    expected = read_table(paths[0]).schema
    for path in paths[1:]:
        _check_schema(paths[0], expected, path, read_table(path).schema)


def _check_schema(first: Path, expected: pa.Schema, path: Path, found: pa.Schema) -> None:
    if expected.names != found.names:
        raise UserError(f"{path}: has columns {', '.join(found.names)}; {first} has {', '.join(expected.names)}")
    for name in expected.names:
        if expected.field(name).type != found.field(name).type:
            raise UserError(
                f"{path}: column {name} is {found.field(name).type}, in {first} it is {expected.field(name).type}"
            )
