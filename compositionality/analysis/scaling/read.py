"""Where points come from: CSV files, wandb's exports, folders of our runs.

- CSV, one row an evaluation: columns run, size, step, loss or accuracy, and the resource by its name. Columns metric
  and prompt, where there are, say what was measured and how it was asked.
- wandb's export of a chart: Step, then ``RUN - METRIC`` for each run (its __MIN and __MAX are not read). Sizes are
  given as ``sizes=[RUN:N]``, the resource as ``per_step=`` units of it a step.
- NAME:FOLDER, a run of train_grpo.py: metrics.jsonl, and final/ for the size; ``metric=`` names the accuracies to
  average.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd

from compositionality.analysis.scaling.points import Points
from compositionality.data.artefact import name_inputs
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError
from compositionality.train.common.compute import FLOPS, PAPER_FLOPS
from compositionality.train.common.compute import non_embedding_parameters as counted
from compositionality.train.common.metrics import GROUPS, SAMPLED, read_metrics

SHARES = ("loss", "accuracy")
SUMMED = {"prompts": GROUPS, "completions": SAMPLED}
"""Resources that are sums over the steps of a run of ours, and the metric that is summed."""
LOGGED = {"flops": FLOPS, "flops_paper": PAPER_FLOPS}
"""Resources of which the sums are logged."""
CONSTANT = ("metric", "prompt", "settings")
"""Columns that must say the same of every row."""
SETTINGS = (
    *("data.prompts_per_step", "data.shuffle", "data.train_limit", "rollout.n", "rollout.temperature"),
    *("rollout.max_tokens", "reward.shape", "reward.control", "algorithm.advantage", "algorithm.loss_aggregation"),
    *("algorithm.drop_equal_groups", "algorithm.dynamic_sampling", "algorithm.updates_per_step", "model.lora.rank"),
)
"""Of a run of ours, in which the runs of one fit may not differ; learning rates and seeds may."""
WANDB = " - "


@dataclass(frozen=True)
class PointSource:
    """How rows are read: name of the resource, accuracies of our runs, sizes and units a step of wandb's."""

    resource: str
    metric: str
    sizes: Mapping[str, float]
    per_step: float


def read_points(paths: Sequence[str], source: PointSource) -> Points:
    """All evaluations after step 0. UserError for a damaged file, mixed metrics or prompts, a run that ended early."""
    frames = [_read(entry, source) for entry in paths]
    table = pd.concat(frames, ignore_index=True)
    for name in CONSTANT:
        if name in table and table[name].nunique() > 1:
            first, other = (str(value).split() for value in table[name].dropna().unique()[:2])
            found = [
                " ".join(word for word in mine if word not in their) for mine, their in ((first, other), (other, first))
            ]
            run = table.loc[table[name] == " ".join(other), "run"].iloc[0]
            raise UserError(f"points: {name} {' and '.join(found)}: one fit takes one; leave {run} and its like out")
    if table.duplicated(["run", "step"]).any():
        run, step = table.loc[table.duplicated(["run", "step"]), ["run", "step"]].iloc[0]
        raise UserError(f"points: run {run}, step {step}: there twice")
    _check_ends(table)
    table = table[table["step"] > 0].sort_values(["size", "run", "step"])
    names = tuple(dict.fromkeys(table["run"]))
    numbers = table["run"].map({name: number for number, name in enumerate(names)})
    columns = (table[name].to_numpy(float) for name in ("size", "resource", "loss"))
    size, resource, loss = columns
    return Points(names, numbers.to_numpy(int), size, table["step"].to_numpy(int), resource, loss)


def sizes_of(entries: Sequence[str]) -> dict[str, float]:
    """Parameters by run from ``RUN:PARAMETERS``. UserError for an entry that is none."""
    found = dict[str, float]()
    for entry in entries:
        run, _, number = entry.rpartition(":")
        try:
            found[run] = float(number)
        except ValueError:
            found[run] = 0.0
        if not run or not 0 < found[run] < float("inf"):
            raise UserError(f"sizes: {entry}: give RUN:PARAMETERS, a positive number")
    return found


def _check_ends(table: pd.DataFrame) -> None:
    """Runs of one size end at the same step."""
    ends = table.groupby(["size", "run"])["step"].max()
    for size, of_size in ends.groupby(level=0):
        short = of_size[of_size < of_size.max()]
        if len(short):
            raise UserError(
                f"points: run {short.index[0][1]} ended at step {short.iloc[0]}, others of size {size:,.0f} at "
                f"{of_size.max()}; finish it, or leave it out"
            )


def _read(entry: str, source: PointSource) -> pd.DataFrame:
    name, _, folder = entry.partition(":")
    if Path(entry).suffix == ".csv":
        return _of_csv(Path(entry), source)
    if not folder:
        raise UserError(f"points: {entry}: give a .csv file, or NAME:FOLDER of a run")
    return _of_run(name, Path(folder), source)


def _of_csv(path: Path, source: PointSource) -> pd.DataFrame:
    try:
        table = pd.read_csv(path)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (ValueError, pd.errors.ParserError) as error:  # of text that is not UTF-8 too
        raise UserError(f"{path}: no CSV file ({str(error).splitlines()[0]})") from error
    if "Step" in table and any(WANDB in column for column in table):
        return _of_wandb(path, table, source)
    if table.empty:
        raise UserError(f"{path}: has no rows")
    share = next((name for name in SHARES if name in table), None)
    missing = [name for name in ("run", "size", "step", source.resource) if name not in table]
    if missing or share is None:
        wanted = missing[0] if missing else "loss or accuracy"
        raise UserError(f"{path}: no column {wanted}; it has {', '.join(map(str, table))}")
    for name in ("size", "step", source.resource, share):
        table[name] = _numbers(path, table, name)
    loss = table[share] if share == "loss" else 1 - table[share]
    kept = [name for name in CONSTANT if name in table]
    found = pd.DataFrame({"run": table["run"].astype(str), "size": table["size"], "step": table["step"].astype(int)})
    return found.assign(resource=table[source.resource], loss=loss, **{name: table[name] for name in kept})


def _numbers(path: Path, table: pd.DataFrame, name: str) -> pd.Series:
    """A column as finite numbers; UserError names the first row that is none (its line in the file)."""
    found = pd.to_numeric(table[name], errors="coerce")
    wrong = found.isna() | found.isin([float("inf"), float("-inf")])
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise UserError(f"{path}: line {row + 2}: {name}: {table[name].iloc[row]!r}: not a number")
    return found


def _of_wandb(path: Path, table: pd.DataFrame, source: PointSource) -> pd.DataFrame:
    if source.per_step <= 0:
        raise UserError(f"{path}: wandb's export knows steps alone; give per_step=, {source.resource} a step")
    frames = []
    for column in table:
        run, dash, metric = str(column).partition(WANDB)
        if not dash or metric.endswith(("__MIN", "__MAX")):
            continue
        if run not in source.sizes:
            raise UserError(f"{path}: run {run}: no size; give sizes=[{run}:PARAMETERS]")
        mine = table[table[column].notna()]
        if mine.empty:
            raise UserError(f"{path}: run {run}: no value of {metric}")
        steps, accuracies = _numbers(path, mine, "Step"), _numbers(path, mine, str(column))
        rows = {"run": run, "size": float(source.sizes[run]), "step": steps.astype(int), "metric": metric}
        frames.append(pd.DataFrame(rows).assign(resource=steps * source.per_step, loss=1 - accuracies))
    return pd.concat(frames, ignore_index=True)


def _of_run(name: str, folder: Path, source: PointSource) -> pd.DataFrame:
    rows = read_metrics(folder / "metrics.jsonl")
    if not rows:
        raise UserError(f"{folder}: has no metrics.jsonl with a row in it; give the folder of a run of train_grpo.py")
    points = list(_evaluations(rows, source))
    if not points:
        raise UserError(
            f"{folder}: no evaluation has {source.metric or 'a metric; give metric='} and {source.resource}"
        )
    recipe = read_json_object(folder / "recipe.json", "give the folder of a finished run")
    last, steps = points[-1]["step"], recipe.get("settings", {}).get("trainer.steps")
    if isinstance(steps, int) and last < steps:
        raise UserError(f"{folder}: its last evaluation is of step {last} of {steps}; finish the run, or leave it out")
    size = non_embedding_parameters(folder / "final")
    settings = " ".join(f"{key}={recipe.get('settings', {}).get(key)}" for key in SETTINGS)
    return pd.DataFrame(points).assign(run=name, size=float(size), metric=source.metric, settings=settings)


def _evaluations(rows: Sequence[Mapping[str, Any]], source: PointSource) -> Iterator[dict[str, Any]]:
    spent = 0.0
    for row in rows:
        if summed := SUMMED.get(source.resource):
            spent += float(row.get(summed) or 0)
        else:
            spent = float(row.get(LOGGED.get(source.resource, source.resource)) or spent)
        accuracies = [value for key, value in row.items() if source.metric and fnmatchcase(key, source.metric)]
        if accuracies and row["step"] > 0 and spent:
            yield {"step": row["step"], "resource": spent, "loss": 1 - sum(accuracies) / len(accuracies)}


def non_embedding_parameters(folder: Path) -> int:
    """Of a model folder, from the headers of its weights; the embedding and the output head are left out."""
    from safetensors import SafetensorError, safe_open

    shapes = dict[str, tuple[int, ...]]()
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise UserError(f"{folder}: no model folder with weights; finish the run")
    for file in files:
        try:
            with safe_open(file, framework="numpy") as weights:
                names = weights.keys()  # it is no mapping
                shapes |= {name: tuple(weights.get_slice(name).get_shape()) for name in names}
        except (SafetensorError, OSError) as error:
            raise UserError(f"{file}: damaged ({error}); export the model again") from error
    return counted(shapes)


def input_files(paths: Sequence[str]) -> dict[str, Path]:
    """What is read of them, by names that hold no more of a path than tells them apart."""
    csvs = [entry for entry in paths if Path(entry).suffix == ".csv"]
    found = dict(zip(name_inputs("points", csvs), map(Path, csvs), strict=True))
    runs = (entry.partition(":") for entry in paths if entry not in csvs)
    return found | {f"{name}/metrics.jsonl": Path(folder, "metrics.jsonl") for name, _, folder in runs}
