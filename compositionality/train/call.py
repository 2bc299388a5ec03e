"""Training from Python: the command, as a function."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compositionality.data.artefact import Recipe, config_hash, make, manifest_path, read_manifest, remove
from compositionality.errors import UserError
from compositionality.train.run_folder import flatten
from compositionality.types import Problem
from compositionality.validation import typed_text
from compositionality.yaml_files import flow_list

if TYPE_CHECKING:
    import pandas as pd

STEP = "train_rows"
VERBS = {"grpo": "train_grpo", "sft": "train_sft"}


def train(
    method: str,
    model: str | Path,
    rows: "pd.DataFrame | str | Path | Sequence[str | Path]",
    output: str | Path,
    **settings: Any,
) -> Path:
    """Train a model with "grpo" on problems, or with "sft" on answers, and return the folder of the new model.

    ``rows``: problem files (sft: files of answers), or a frame, which is kept as OUTPUT.parquet: problems as
    ``problems`` makes them; for sft with the columns prompt and response, or messages. ``settings``: the keys of
    ``compositionality train_grpo --help`` (train_sft), with two underscores for a dot: ``trainer__steps=20``; also
    profile, step and ``force=True``. What runs is that command, with a thread for each process on a CPU: called again
    it continues a run that was stopped, and does nothing after one that ended. UserError for what it refuses.
    """
    if method not in VERBS:
        raise UserError(f"method {method!r}: unknown; give {' or '.join(VERBS)}")
    values = {key.replace("__", "."): value for key, value in flatten(settings).items() if key}
    if not isinstance(force := settings.get("force", False), bool):
        raise UserError(f"force={force!r}: give True or False")
    if "dry_run" in settings:
        raise UserError(f"dry_run: a check by the command: compositionality {VERBS[method]} … --dry-run")
    if not isinstance(output, str | Path):
        raise UserError(f"output={output!r}: give a folder")
    files, saved = [rows] if isinstance(rows, str | Path) else rows, Path(f"{output}.parquet")
    is_new = hasattr(files, "columns") and not saved.exists()
    if hasattr(files, "columns"):
        replace = force or not Path(output).exists()
        files = [_written(files, saved, as_problems=method == "grpo", replace=replace)]
    if not isinstance(files, list | tuple) or not all(isinstance(file, str | Path) for file in files):
        raise UserError(f"rows: {type(rows).__name__} is neither a frame nor the path of a file, or a list of paths")
    values |= {"model.path": model, "data.train_files": flow_list(map(str, files)), "trainer.output": output}
    words = [f"{key}={typed_text(value)}" for key, value in values.items()]
    command = [sys.executable, "-m", "compositionality", VERBS[method], *words]
    sys.stdout.flush()  # what was printed before stands before what the command prints
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == UserError.exit_code:
        for path in (manifest_path(saved), saved) if is_new and not Path(output).exists() else ():
            remove(path)
        raise UserError(done.stderr.splitlines()[-1].removeprefix("error: "))
    sys.stderr.write(done.stderr)
    done.check_returncode()
    return Path(output, "final")


def _written(rows: "pd.DataFrame", path: Path, *, as_problems: bool, replace: bool) -> Path:
    """Write a frame unless it is there; ``replace`` one that was written by this before.

    UserError for a frame that is no table, and for a file that is there and is no such frame, or another one.
    """
    import pyarrow as pa

    from compositionality.data.parquet import write_table
    from compositionality.data.problems import to_table

    names, manifest = [entry.name for entry in fields(Problem)], read_manifest(path)
    if path.exists() and (manifest is None or manifest.step != STEP):
        raise UserError(f"{path}: is there, and not as rows of an earlier call; give another output")
    try:
        if as_problems and {*names} <= {*rows.columns}:
            table = to_table([Problem(**row) for row in rows[names].to_dict("records")], "train")
        else:
            table = pa.Table.from_pandas(rows, preserve_index=False)
        recipe = Recipe(STEP, {"rows": config_hash({"rows": table.to_pylist()})})
        make(path, recipe, lambda partial: write_table(table, partial), force=replace)
    except pa.ArrowException as error:
        raise UserError(f"rows: {' '.join(str(error).split())}; leave that column out") from error
    return path
