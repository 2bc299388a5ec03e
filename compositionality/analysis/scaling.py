"""``examples/fit_scaling.py``: fit every law to all evaluations, and to some of them to predict the others.

Points are a frame with a row per evaluation: run, size (parameters without embeddings), step, resource (spent so far),
loss (1 − accuracy). They come from CSV files (columns run, size, step, loss or accuracy, and the resource by its
name; metric and prompt, if present, must be the same in all rows) and from runs of train_grpo.py.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from annotated_types import Ge

from compositionality.analysis.laws import LAWS, akaike, parameter_rows, r_squared
from compositionality.analysis.predict import FITTED, REGIONS, FittedStudy, curve_rows, error_rows, figures, predict
from compositionality.console import new_console, new_table
from compositionality.data import artefact
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonEmptyStr, PositiveFraction, Seed
from compositionality.train.metrics import FLOPS, GROUPS, PAPER_FLOPS, SAMPLED, read_metrics
from compositionality.validation import check_ranges, choices

STEP = "fit_scaling"
COLUMNS = ["run", "size", "step", "resource", "loss"]
RESOURCES = {"flops": FLOPS, "flops_paper": PAPER_FLOPS, "prompts": GROUPS, "completions": SAMPLED}  # in metrics.jsonl
SUMMED = ("prompts", "completions")  # logged per step, not as totals
REMARKS = {
    "not_fitted": "not fitted: {}",
    "on_bound": "{} on a bound: these points do not determine it; no result",
    "not_predicted": "nothing predicted: {}",
    "held_out_on_bound": "{} on a bound in the fit to the first steps: no prediction",
}
CONSTANT = ("metric", "prompt", "settings")  # columns with one value in all rows
SETTINGS = (
    *("data.prompts_per_step", "data.shuffle", "data.train_limit", "rollout.n", "rollout.temperature"),
    *("rollout.max_tokens", "reward.shape", "reward.control", "algorithm.advantage", "algorithm.loss_aggregation"),
    *("algorithm.drop_equal_groups", "algorithm.dynamic_sampling", "algorithm.updates_per_step", "model.lora.rank"),
)
"""Settings that must be equal in all our runs of one fit; learning rates and seeds may differ."""


@dataclass
class ScalingSettings:
    points: list[str] = REQUIRED  # CSV files, or NAME:FOLDER of runs
    output: Path = REQUIRED  # folder for scaling.json and scaling_points.csv
    resource: NonEmptyStr = "flops"  # a column of the CSV files; for our runs flops, flops_paper, prompts, completions
    metric: str = ""  # for our runs: accuracies to average, * matches any text: val-core/string-level3/acc/mean@1
    laws: list[str] = field(default_factory=list)  # laws to fit; empty: all that the number of sizes allows
    share: PositiveFraction = 0.5  # first share of the steps, from which later evaluations are predicted
    draws: Annotated[int, Ge(20)] = 200  # draws of the bootstrap over runs
    seed: Seed = 0  # seed of starts and draws
    force: bool = False  # replace a result that was made from something else


def fit_scaling(settings: ScalingSettings) -> Path:
    """Write ``output``; print the laws with their predictions. UserError for inconsistent points."""
    laws, points = check(settings, dry=False)
    study = FittedStudy(points, settings.share, settings.draws, settings.seed)
    rows = [law_row(study, law) for law in laws]
    if settings.laws and (failed := [row["not_fitted"] for row in rows if row["not_fitted"]]):
        raise UserError(failed[0])
    runs = points.groupby("size")["run"].nunique()
    content = {
        "resource": settings.resource,
        "share": settings.share,
        "sizes": [round(size) for size in runs.index],
        "runs": points["run"].nunique(),
        "runs_of_a_size": int(runs.min()),
        "laws": rows,
        "quantities": figures(study),
    }
    table = points.rename(columns={"resource": settings.resource})
    bodies = {
        settings.output / "scaling_points.csv": lambda path: table.to_csv(path, index=False),
        settings.output / "scaling.json": lambda path: path.write_text(json.dumps(content, indent=1) + "\n"),
    }
    files = [path / "metrics.jsonl" if name else path for name, path in map(_place, settings.points)]
    inputs = dict(zip(artefact.name_inputs("points", files), files, strict=True))
    keys = {name: value for name, value in asdict(settings).items() if name not in ("points", "output", "force")}
    for path, body in bodies.items():
        artefact.make(path, artefact.Recipe(STEP, keys, inputs), body, force=settings.force, follows=True)
    counts = f"{len(points)} evaluations of {content['runs']} runs, {len(runs)} sizes; resource: {settings.resource}"
    print(f"{counts}; errors of log loss: root mean square (mean, share in the intervals)")
    show(rows)
    print(settings.output / "scaling.json")
    return settings.output


def check(settings: ScalingSettings, *, dry: bool = True) -> tuple[list[str], pd.DataFrame]:
    """Return the names of the laws, and the points; if ``dry``, of the inputs that exist.

    UserError for an unknown law, a value out of its range, a foreign result, and as ``read_points``.
    """
    check_ranges(settings)
    if not settings.points:
        raise UserError("points: give at least one, as points=[FILE.csv,NAME:FOLDER]")
    for name in settings.laws:
        if name not in LAWS:
            raise UserError(f"laws: {name} unknown; {choices(name, LAWS)}")
    artefact.hidden_sibling(settings.output, "lock")  # refuses a path without a name
    for file in ("scaling.json", "scaling_points.csv"):
        artefact.check_maker(settings.output / file, STEP, force=settings.force)
    present = [entry for entry in settings.points if artefact.is_to_be_checked(_place(entry)[1], dry=dry)]
    points = read_points(present, settings.resource, settings.metric) if present else pd.DataFrame()
    return settings.laws or list(LAWS), points


def law_row(study: FittedStudy, law: str) -> dict[str, Any]:
    """Return an entry of ``laws`` in scaling.json: parameters, R², curves, predictions, or why they are missing."""
    row: dict[str, Any] = {
        "law": law, "formula": LAWS[law].formula, "n_parameters": 0, "aic": None, "on_bound": [], "not_fitted": None,
        "parameters": [], "r_squared": [], "curves": [], "held_out": [], "held_out_on_bound": [], "not_predicted": None,
    }  # fmt: skip
    try:
        fit = study.fitted(law)
    except UserError as error:
        return row | {"not_fitted": str(error)}
    points = study.points
    row |= {
        "n_parameters": len(fit.theta), "reference": fit.reference, "starts": fit.starts, "aic": akaike(fit, points),
        "on_bound": fit.on_bound, "parameters": parameter_rows(fit),
        "r_squared": [{"size": round(size), "r_squared": value} for size, value in r_squared(fit, points).items()],
        "curves": curve_rows(predict(fit, points, points.assign(region=FITTED))),
    }  # fmt: skip
    try:
        fit, curves = study.predicted(law)
    except UserError as error:
        return row | {"not_predicted": str(error)}
    return row | {"held_out": error_rows(curves), "held_out_on_bound": fit.on_bound}


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a line per law (parameters, AIC, errors of its predictions), then remarks on fits without a result."""
    table = new_table("law")
    for title in ("parameters", "AIC", *REGIONS):
        table.add_column(title, justify="right", overflow="fold")
    for row in rows:
        errors = dict.fromkeys(REGIONS, "–")
        for held_out in row["held_out"]:
            covered = "" if held_out["covered"] is None else f", {100 * held_out['covered']:.0f} % covered"
            cell = f"{held_out['error']:.3f} ({held_out['bias']:+.3f}{covered})"
            errors[held_out["region"]] = cell.replace("-", "−")
        aic = "–" if row["aic"] is None else f"{row['aic']:.0f}"
        table.add_row(row["law"], str(row["n_parameters"]), aic, *errors.values())
    new_console().print(table)
    for row in rows:
        for key, remark in REMARKS.items():
            if row[key]:
                text = row[key] if isinstance(row[key], str) else ", ".join(row[key])
                print(f"{row['law']}: {remark.format(text)}")


def read_points(entries: Sequence[str], resource: str, metric: str = "") -> pd.DataFrame:
    """Read all evaluations after step 0, sorted by size, run and step.

    UserError for a damaged file, mixed metrics or prompts, a run that ended early, a value without a logarithm.
    """
    tables = [
        _read_run(name, path, resource, metric) if name else _read_csv(path, resource)
        for name, path in map(_place, entries)
    ]
    table = pd.concat(tables, ignore_index=True)
    _check_alike(table)
    repeated = table[table.duplicated(["run", "step"])]
    if len(repeated):
        run, step = repeated[["run", "step"]].iloc[0]
        raise UserError(f"points: run {run}, step {step}: given twice; keep one evaluation per run and step")
    points = table.loc[table["step"] > 0, COLUMNS].sort_values(["size", "run", "step"], ignore_index=True)
    for name in ("size", "resource", "loss"):
        for row in points[points[name] <= 0].to_dict("records"):
            raise UserError(
                f"{row['run']}, step {row['step']}: {name} {row[name]:g} has no logarithm; leave this evaluation out"
            )
    return points


def _check_alike(table: pd.DataFrame) -> None:
    """Raise UserError for different metrics, prompts or settings, and for runs of a size with different last steps."""
    for name in CONSTANT:
        if name in table and table[name].nunique() > 1:
            first, other = table[name].dropna().unique()[:2]
            words = [[word for word in a.split() if word not in b.split()] for a, b in ((first, other), (other, first))]
            run, (only_first, only_other) = table.loc[table[name] == other, "run"].iloc[0], map(" ".join, words)
            raise UserError(
                f"points: {name} {only_first} and {only_other}: a fit needs one; leave {run} and similar runs out"
            )
    ends = table.groupby(["size", "run"], as_index=False)["step"].max()
    ends["last"] = ends.groupby("size")["step"].transform("max")
    for row in ends[ends["step"] < ends["last"]].to_dict("records"):
        raise UserError(
            f"points: run {row['run']} ended at step {row['step']}, others of size {row['size']:,.0f} at "
            f"{row['last']}; finish it, or leave it out"
        )


def _place(entry: str) -> tuple[str, Path]:
    """Split an entry of ``points`` into the run's name ("" for a CSV file) and the path."""
    name, _, folder = entry.partition(":")
    if Path(entry).suffix == ".csv":
        return "", Path(entry)
    if not folder:
        raise UserError(f"points: {entry}: give a .csv file, or NAME:FOLDER of a run")
    return name, Path(folder)


def _read_csv(path: Path, resource: str) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, dtype=dict.fromkeys(("run", *CONSTANT), str))
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (ValueError, pd.errors.ParserError) as error:  # also text that is not UTF-8
        raise UserError(f"{path}: not a CSV file ({str(error).splitlines()[0]})") from error
    if table.empty:
        raise UserError(f"{path}: has no rows; give a file with evaluations")
    measured = next((name for name in ("loss", "accuracy") if name in table), "loss or accuracy")
    for name in ("run", "size", "step", resource, measured):
        if name not in table:
            raise UserError(f"{path}: no column {name}; it has {', '.join(map(str, table))}")
        values = table[name] if name == "run" else pd.to_numeric(table[name], errors="coerce")
        wrong = values.isna() | values.isin([inf, -inf])
        if wrong.any():
            row, fix = int(wrong.to_numpy().argmax()), "give a name" if name == "run" else "give a number"
            raise UserError(f"{path}: line {row + 2}: {name}: {table[name].iloc[row]!r}: {fix}")
        table[name] = values
    loss = table[measured] if measured == "loss" else 1 - table[measured]
    table = table.assign(resource=table[resource], loss=loss).astype({"step": int})
    return table[[*COLUMNS, *(name for name in CONSTANT if name in table)]]


def _read_run(name: str, folder: Path, resource: str, metric: str) -> pd.DataFrame:
    from compositionality.rollout.model_folder import shape_of_model

    rows = pd.DataFrame(read_metrics(folder / "metrics.jsonl"))
    if rows.empty:
        raise UserError(f"{folder}: has no metrics.jsonl with rows; give the folder of a run of train_grpo.py")
    spent = rows.reindex(columns=[RESOURCES.get(resource, resource)]).squeeze(axis=1).astype(float)
    spent = spent.fillna(0.0).cumsum() if resource in SUMMED else spent.ffill()
    accuracies = rows[[key for key in rows if metric and fnmatchcase(key, metric)]].astype(float)
    points = pd.DataFrame({"step": rows["step"], "resource": spent, "loss": 1 - accuracies.mean(axis=1)}).dropna()
    points = points[(points["step"] > 0) & (points["resource"] > 0)]
    if points.empty:
        raise UserError(f"{folder}: no evaluation has {metric or 'a metric; give metric='} and {resource}")
    recipe = read_json_object(folder / "recipe.json", "give the folder of a finished run").get("settings", {})
    last, steps = points["step"].iloc[-1], recipe.get("trainer.steps")
    if isinstance(steps, int) and last < steps:
        raise UserError(f"{folder}: its last evaluation is of step {last} of {steps}; finish the run, or leave it out")
    settings = " ".join(f"{key}={recipe.get(key)}" for key in SETTINGS)
    shape = shape_of_model(folder / "final")
    size = float(shape.parameters - shape.vocabulary * shape.width * (1 if shape.tied else 2))  # without embeddings
    return points.assign(run=name, size=size, metric=metric, settings=settings)
