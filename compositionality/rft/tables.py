"""Split a problem file into chunks, one per iteration of rejection fine-tuning; merge data sets into one."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.data.artefact import (
    Recipe,
    check_target,
    file_hash,
    is_to_be_checked,
    make,
    name_inputs,
    read_manifest,
)
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import read_problems, say_what_is_left_out
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonEmptyStr, PositiveInt, Seed
from compositionality.rft.rows import prompt_key
from compositionality.seeds import row_at
from compositionality.validation import check_once, check_ranges

SPLITS = ("train.parquet", "test.parquet")


# ---- split


@dataclass
class ChunkSettings:
    """Settings of ``split_chunks``; with a budget of completions, it and ``n_samples`` give the size of a chunk."""

    problems: NonEmptyStr = REQUIRED  # problem file (parquet)
    output: NonEmptyStr = REQUIRED  # folder for 0.parquet, 1.parquet …
    chunks: PositiveInt = 6  # number of chunks
    rows_per_chunk: PositiveInt | None = None  # problems per chunk; null: an equal part of all
    rollout_budget: PositiveInt | None = None  # instead: completions of all chunks together, n_samples per problem
    completions_of: str = ""  # instead: as many completions as this finished RL run; rollout_budget overrides it
    n_samples: PositiveInt = 2  # for a budget: completions per problem
    prompts_of: str = ""  # use only the problems of this finished RL run, in its order
    seed: Seed = 42  # seed of the shuffle
    force: bool = False  # replace a result that was made from something else

    def size(self, n_problems: int) -> int:
        """Return the problems per chunk: as set, or within the budget of rollouts, or an equal part of all."""
        if self.rows_per_chunk is not None and (self.rollout_budget or self.completions_of):
            raise UserError("give rows_per_chunk or rollout_budget, not both")
        if (rollouts := budget(self)) is None:
            return self.rows_per_chunk if self.rows_per_chunk is not None else n_problems // self.chunks
        size = rollouts // (self.chunks * self.n_samples)
        if size < 1:
            raise UserError(
                f"a budget of {rollouts} rollouts is too small for {self.chunks} chunks x {self.n_samples} samples"
            )
        return size


def budget(settings: ChunkSettings) -> int | None:
    """Return the completions of all chunks together; None without a budget, or if its run is unfinished."""
    run = Path(settings.completions_of)
    if settings.rollout_budget or not settings.completions_of or not (run / "final").is_dir():
        return settings.rollout_budget
    manifest = read_manifest(run / "final")
    completions = manifest.facts.get("training", {}).get("completions") if manifest else None
    if not completions:
        raise UserError(f"{run}/final: has no number of completions; give rollout_budget=COMPLETIONS")
    return int(completions)


def stream_of(settings: ChunkSettings) -> dict[str, Any] | None:
    """Return ``seed``, ``shuffle`` and number of ``groups`` of the run ``prompts_of``, or None if it is unfinished."""
    manifest = read_manifest(Path(settings.prompts_of, "final")) if settings.prompts_of else None
    if manifest is None:
        return None
    files = [digest for name, digest in manifest.inputs.items() if name.startswith("train_files")]
    if files != [file_hash(Path(settings.problems))] or manifest.settings.get("data.train_limit"):
        raise UserError(f"{settings.prompts_of}: was not trained on exactly {settings.problems}; give that run's file")
    stream = {key: manifest.settings[f"data.{key}"] for key in ("seed", "shuffle")}
    return {**stream, "groups": manifest.facts["training"]["groups"]}


def split_chunks(settings: ChunkSettings) -> Path:
    """Shuffle a problem file and write ``output``/0.parquet, 1.parquet …: consecutive slices that share no row."""
    check_chunks(settings, dry=False)
    if settings.completions_of and budget(settings) is None:
        raise UserError(
            f"{settings.completions_of}: not a finished run, so its number of completions is unknown; finish it "
            "first, or give rollout_budget=COMPLETIONS"
        )
    stream = stream_of(settings)
    if settings.prompts_of and stream is None:
        raise UserError(f"{settings.prompts_of}: not a finished run, so its problems are unknown; finish it first")
    output = Path(settings.output)

    def write(folder: Path) -> dict[str, Any]:
        problems = read_problems(Path(settings.problems))
        say_what_is_left_out(Path(settings.problems))
        n = problems.num_rows
        rows = np.random.default_rng(settings.seed).permutation(n)
        if stream:  # each once, in the order of the run
            order = (row_at(place, n, stream["seed"], shuffle=stream["shuffle"]) for place in range(stream["groups"]))
            rows = np.array(list(dict.fromkeys(order)))
        size = checked_size(settings, len(rows))
        for number in range(settings.chunks):
            write_table(problems.take(rows[number * size : (number + 1) * size]), folder / f"{number}.parquet")
        return {"rows": [size] * settings.chunks, "rows_left": len(rows) - settings.chunks * size}

    if facts := make(output, _chunks_recipe(settings), write, force=settings.force):
        size, left = facts["rows"][0], facts["rows_left"]
        print(f"{output}: {settings.chunks} chunks of {size:,} problems, {left:,} left over")
    return output


def check_chunks(settings: ChunkSettings, *, dry: bool = True) -> None:
    """Raise UserError for settings that fit no problem file; in a dry run also for a file with too few rows."""
    check_ranges(settings)
    settings.size(settings.chunks)
    check_target(Path(settings.output), _chunks_recipe(settings), force=settings.force)
    if dry and is_to_be_checked(settings.problems, dry=True):
        n_problems = read_problems(Path(settings.problems)).num_rows
        if not settings.prompts_of:
            checked_size(settings, n_problems)


def checked_size(settings: ChunkSettings, n_problems: int) -> int:
    """Return the number of problems per chunk. UserError if a file of ``n_problems`` has too few."""
    size = settings.size(n_problems)
    total = settings.chunks * size
    if size < 1 or total > n_problems:
        raise UserError(
            f"{settings.problems}: {n_problems} rows are too few for {settings.chunks} chunks of {max(size, 1)}"
            f" (needs {max(total, settings.chunks)}); make more problems or ask for fewer"
        )
    return size


def _chunks_recipe(settings: ChunkSettings) -> Recipe:
    apart = ("problems", "output", "completions_of", "prompts_of", "force")
    values = {key: value for key, value in asdict(settings).items() if key not in apart}
    values["rollout_budget"] = budget(settings)
    if stream := stream_of(settings):
        del values["seed"]
        values |= {f"stream_{key}": value for key, value in stream.items()}
    if not settings.rollout_budget and not settings.completions_of:
        del values["n_samples"]
    return Recipe("split_chunks", values, {"problems": Path(settings.problems)})


# ---- merge


@dataclass
class MergeSettings:
    """Settings of ``merge_data``."""

    inputs: list[str] = REQUIRED  # two or more files, or folders of train and test
    output: NonEmptyStr = REQUIRED  # a file, or a folder if the inputs are folders
    allow_shared_prompts: bool = False  # keep rows with a prompt of an earlier input
    force: bool = False  # replace a result that was made from something else


def merge_data(settings: MergeSettings) -> Path:
    """Merge the inputs in order: files to one file, folders of train and test to one such folder."""
    inputs, output = named_inputs(settings), Path(settings.output)

    def write(target: Path) -> dict[str, Any]:
        parts = parts_of(inputs)
        shared = check_prompts(parts, allow=settings.allow_shared_prompts)
        rows = {}
        for name, paths in parts.items():
            schema = pa.schema([field.with_nullable(True) for field in read_table(paths[0]).schema])
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            with pq.ParquetWriter(target / name, schema, compression="zstd") as writer:
                for path in paths:
                    writer.write_table(read_table(path).cast(schema))
            rows[name or "all"] = pq.read_metadata(target / name).num_rows
        return {"shared_prompts": shared, "rows": rows}

    if facts := make(output, _merge_recipe(settings, inputs), write, force=settings.force):
        print(f"{output}: {', '.join(f'{rows:,} rows ({name})' for name, rows in facts['rows'].items())}")
    return output


def check_merge(settings: MergeSettings) -> None:
    """Check, for a dry run, the settings, the output, and columns and prompts of the inputs that exist."""
    inputs = named_inputs(settings)
    check_target(Path(settings.output), _merge_recipe(settings, inputs), force=settings.force)
    existing = [path for path in inputs if is_to_be_checked(path, dry=True)]
    check_prompts(parts_of(existing), allow=settings.allow_shared_prompts)


def _merge_recipe(settings: MergeSettings, inputs: Sequence[Path]) -> Recipe:
    names = name_inputs("inputs", inputs)  # in the order of the rows
    values = {"allow_shared_prompts": settings.allow_shared_prompts, "inputs": names}
    return Recipe("merge_data", values, dict(zip(names, inputs, strict=True)))


def named_inputs(settings: MergeSettings) -> list[Path]:
    """Return the inputs. UserError for fewer than two, or for one given twice."""
    inputs = [Path(path) for path in settings.inputs]
    if len(inputs) < 2:
        raise UserError("inputs: give two or more files or folders, as inputs=[A,B]")
    check_once("inputs", settings.inputs)
    return inputs


def parts_of(inputs: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the input files for each file of the result ("": the result itself). UserError if columns differ."""
    parts = {"": list(inputs)}
    if any(path.is_dir() for path in inputs):
        for path in inputs:
            if not (path / SPLITS[0]).is_file():
                raise UserError(f"{path}: has no {SPLITS[0]}; give only files, or only folders of train and test")
        parts = {name: [path / name for path in inputs if (path / name).is_file()] for name in SPLITS}
    for paths in parts.values():
        check_schemas(paths)
    return {name: paths for name, paths in parts.items() if paths}


def check_prompts(parts: dict[str, list[Path]], *, allow: bool) -> int:
    """Return how many rows have a prompt of another input. UserError unless allowed, and always across splits."""
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
                        f"{path}: row {row} has a prompt of {owner}; drop it or set allow_shared_prompts=true"
                    )
                shared += 1
    return shared


def _keys(path: Path) -> Iterator[str]:
    """Yield the key of every row's prompt: the turns before the response of SFT rows, the prompt of problem rows."""
    table = read_table(path)
    column = "messages" if "messages" in table.column_names else "prompt"
    if column not in table.column_names:
        raise UserError(f"{path}: has neither column messages nor prompt; it has {', '.join(table.column_names)}")
    for row, turns in enumerate(table[column].to_pylist()):
        chat: Any = [{"role": "user", "content": turns}] if isinstance(turns, str) else turns
        is_chat = isinstance(chat, list) and all(
            isinstance(turn, dict) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)
            for turn in chat
        )
        prompt = (chat[:-1] if column == "messages" else chat) if is_chat else []
        if not prompt:
            raise UserError(f"{path}: row {row} has no prompt in its column {column}; make the file again")
        yield prompt_key(prompt)


def check_schemas(paths: Sequence[Path]) -> None:
    schemas = [read_table(path).schema for path in paths]
    for path, schema in zip(paths[1:], schemas[1:], strict=True):
        first = schemas[0]
        if first.names != schema.names:
            raise UserError(f"{path}: has columns {', '.join(schema.names)}; {paths[0]} has {', '.join(first.names)}")
        for name in first.names:
            type_, expected = schema.field(name).type, first.field(name).type
            if type_ != expected:
                raise UserError(f"{path}: column {name} is {type_}, in {paths[0]} it is {expected}; make them equal")
