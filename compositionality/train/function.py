"""Training from Python, in a process of its own: the package ``compositionality.train``, called, is this function."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compositionality.data.artefact import Recipe, config_hash, make
from compositionality.errors import UserError
from compositionality.ranges import typed_text
from compositionality.train.run_folder import flatten
from compositionality.types import Problem
from compositionality.yaml_files import flow_list

if TYPE_CHECKING:
    import pandas as pd

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
    files = [rows] if isinstance(rows, str | Path) else rows
    if not isinstance(files, Sequence):
        replace = bool(settings.get("force")) or not Path(output).exists()
        files = [_written(files, Path(f"{output}.parquet"), as_problems=method == "grpo", replace=replace)]
    values |= {"model.path": model, "data.train_files": flow_list(map(str, files)), "trainer.output": output}
    words = [f"{key}={typed_text(value)}" for key, value in values.items()]
    command = [sys.executable, "-m", "compositionality", VERBS[method], *words]
    sys.stdout.flush()  # what was printed before stands before what the command prints
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == UserError.exit_code:
        raise UserError(done.stderr.splitlines()[-1].removeprefix("error: "))
    sys.stderr.write(done.stderr)
    done.check_returncode()
    return Path(output, "final")


def _written(rows: "pd.DataFrame", path: Path, *, as_problems: bool, replace: bool) -> Path:
    """Write a frame unless it is there. UserError for one that is no table, or if another was written there before."""
    import pyarrow as pa

    from compositionality.data.parquet import write_table
    from compositionality.data.problems import to_table

    names = [entry.name for entry in fields(Problem)]
    try:
        if as_problems and {*names} <= {*rows.columns}:
            table = to_table([Problem(**row) for row in rows[names].to_dict("records")], "train")
        else:
            table = pa.Table.from_pandas(rows, preserve_index=False)
        recipe = Recipe("train_rows", {"rows": config_hash({"rows": table.to_pylist()})})
        make(path, recipe, lambda partial: write_table(table, partial), force=replace)
    except pa.ArrowException as error:
        raise UserError(f"rows: {' '.join(str(error).split())}; leave that column out") from error
    return path
