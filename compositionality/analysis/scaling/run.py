"""``examples/fit_scaling.py``: every law fitted to all evaluations, and to some of them to predict the others."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from annotated_types import Ge

from compositionality.analysis.scaling.extrapolate import Prediction, Region, extrapolate, predict
from compositionality.analysis.scaling.fit import (
    LawFit,
    RunDraws,
    akaike,
    bootstrap_runs,
    fit_law,
    intervals,
    r_squared,
)
from compositionality.analysis.scaling.laws import LAWS, Law, law_named
from compositionality.analysis.scaling.points import Points
from compositionality.analysis.scaling.quantities import ScalingQuantity, quantities
from compositionality.analysis.scaling.read import PointSource, input_files, read_points, sizes_of
from compositionality.console import new_console
from compositionality.data.artefact import Recipe, exclusive, write_all_derived
from compositionality.errors import UserError
from compositionality.evaluate.frames import markdown_lines as markdown_of
from compositionality.evaluate.frames import rich_table, write_between_marks
from compositionality.ranges import REQUIRED, NonEmptyStr, NonNegativeFloat, PositiveFraction, Seed, check_ranges

STEP = "fit_scaling"
FITS, POINTS = "scaling.json", "scaling_points.csv"
FREE = ("points", "output", "markdown", "place", "force")
"""Settings that do not change the fits."""
_NOTHING: Mapping[str, Any] = {"held_out": [], "held_out_on_bound": [], "not_predicted": None}


@dataclass
class ScalingSettings:
    """Settings of ``fit_scaling``; ``points``: see analysis/scaling/read.py."""

    points: list[str] = REQUIRED  # CSV files, exports of wandb, NAME:FOLDER of runs
    output: Path = REQUIRED  # folder for scaling.json and scaling_points.csv
    resource: NonEmptyStr = "flops"  # column of a file; of our runs flops, flops_paper, prompts, completions
    metric: str = ""  # of our runs: accuracies to average, * for any text: val-core/string-level3/acc/mean@1
    sizes: list[str] = field(default_factory=list)  # of runs in an export of wandb, RUN:PARAMETERS
    per_step: NonNegativeFloat = 0.0  # of an export of wandb: units of the resource a step
    laws: list[str] = field(default_factory=list)  # empty: all that these sizes determine
    share: PositiveFraction = 0.5  # of the steps: what later evaluations are predicted from
    draws: Annotated[int, Ge(20)] = 200  # of the bootstrap over runs
    seed: Seed = 0  # of starts and draws
    markdown: str = ""  # file for the table of laws, or with a place for it
    place: str = "laws"  # name of that place
    force: bool = False  # replace a result that was made from something else


def fit_scaling(settings: ScalingSettings) -> Path:
    """Write ``output``; print the laws with what they predict. UserError for points that do not fit together."""
    laws = chosen_laws(settings)
    source = PointSource(settings.resource, settings.metric, sizes_of(settings.sizes), settings.per_step)
    points = read_points(settings.points, source)
    fits = list(_fits(laws, points, settings))
    content = {
        "resource": settings.resource,
        "share": settings.share,
        "sizes": [round(size) for size in points.sizes],
        "runs": len(points.runs),
        "runs_of_a_size": min(len(points.runs_of(size)) for size in points.sizes),
        "laws": fits,
        "quantities": [_row(one) for one in quantities(points, settings.share, settings.draws, settings.seed)],
    }
    kept = {name: value for name, value in asdict(settings).items() if name not in FREE}
    bodies = {
        settings.output / FITS: lambda path: path.write_text(json.dumps(content, indent=1) + "\n"),
        settings.output / POINTS: lambda path: _table(points, settings.resource).to_csv(path, index=False),
    }
    with exclusive(settings.output):
        write_all_derived(bodies, Recipe(STEP, kept, input_files(settings.points)), force=settings.force)
    counts = f"{len(points)} evaluations of {len(points.runs)} runs, {len(points.sizes)} sizes"
    print(
        f"{counts}; resource: {settings.resource}; errors of log loss: root mean square (mean, share in the intervals)"
    )
    new_console().print(rich_table(frame_of(fits), "law"))
    for one in fits:
        for line in remarks(one):
            print(line)
    if settings.markdown:
        write_between_marks(Path(settings.markdown), settings.place, "\n".join(_markdown(content, counts)))
    print(settings.output / FITS)
    return settings.output


def _markdown(content: Mapping[str, Any], counts: str) -> list[str]:
    """The table of laws; slopes by size; what keeps fits from being results."""
    slopes: list[Any] = next((one["parameters"] for one in content["laws"] if one["law"] == "log_linear"), [])
    told = "; ".join(_with_interval(one) for one in slopes if one["name"] == "k")
    lines = [line for one in content["laws"] for line in remarks(one)]
    errors = "Errors of log loss: root mean square (mean, share in the intervals)"
    return [
        "",
        f"{counts}; resource: {content['resource']}. {errors}.",
        "",
        *markdown_of(frame_of(content["laws"]), "law"),
        "",
        f"Slopes k: {told}.",
        "",
        *(f"- {line}" for line in lines),
        "",
    ]


def _with_interval(one: Mapping[str, Any]) -> str:
    """``14,840 parameters: 0.01 [0.00, 0.03]``."""
    ends = "" if one["low"] is None else f" [{one['low']:.2f}, {one['high']:.2f}]"
    return f"{one['size']:,.0f} parameters: {one['value']:.2f}{ends}".replace("-", "−")


def chosen_laws(settings: ScalingSettings) -> list[Law]:
    """UserError for an unknown law or a value out of its range."""
    check_ranges(settings)
    if not settings.points:
        raise UserError("points: give at least one, as points=[FILE.csv,NAME:FOLDER]")
    sizes_of(settings.sizes)
    return [law_named(name) for name in settings.laws or LAWS]


def frame_of(fits: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A line a law: parameters, AIC, error of each prediction in log loss and how much of it its intervals cover."""
    rows = {}
    for one in fits:
        cells = {"parameters": str(one["n_parameters"]), "AIC": f"{one['aic']:.0f}" if one["aic"] is not None else "–"}
        regions = {found["region"]: found for found in one["held_out"]}
        rows[one["law"]] = cells | {str(region): _cell(regions.get(str(region))) for region in Region}
    return pd.DataFrame(rows).T


def remarks(one: Mapping[str, Any]) -> Iterator[str]:
    """What keeps a fit from being a result."""
    if one["not_fitted"]:
        yield f"{one['law']}: not fitted: {one['not_fitted']}"
    if one["on_bound"]:
        yield f"{one['law']}: {', '.join(one['on_bound'])} on a bound: these points do not determine it; no result"
    if one["not_predicted"]:
        yield f"{one['law']}: nothing predicted: {one['not_predicted']}"
    if one["held_out_on_bound"]:
        yield f"{one['law']}: {', '.join(one['held_out_on_bound'])} on a bound in the fit that predicts: no prediction"


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "–"
    covered = "" if found["covered"] is None else f", {100 * found['covered']:.0f} % covered"
    return f"{found['error']:.3f} ({found['bias']:+.3f}{covered})".replace("-", "−")


def _fits(laws: Sequence[Law], points: Points, settings: ScalingSettings) -> Iterator[dict[str, Any]]:
    curves = points.mean_curves()
    for law in laws:
        empty = {
            "law": law.name,
            "formula": law.formula,
            "n_parameters": 0,
            "aic": None,
            **_NOTHING,
            "on_bound": [],
        }
        try:
            fit = fit_law(law, points, settings.seed)
            drawn = bootstrap_runs(fit, points, settings.draws, settings.seed)
        except UserError as error:
            if settings.laws:
                raise
            yield {**empty, "not_fitted": str(error), "parameters": [], "r_squared": [], "curves": []}
            continue
        yield {
            **empty,
            "not_fitted": None,
            "n_parameters": len(fit.theta),
            "reference": fit.frame.reference,
            "starts": fit.starts,
            "aic": akaike(fit, points),
            "on_bound": list(fit.on_bound),
            "curves": _curves(curves, predict(fit, drawn, points, points, curves)),
            "parameters": list(_parameters(fit, drawn)),
            "r_squared": [{"size": round(size), "r_squared": found} for size, found in r_squared(fit, points).items()],
            **_held_out(law, points, settings),
        }


def _held_out(law: Law, points: Points, settings: ScalingSettings) -> dict[str, Any]:
    """Nothing where what is left is too little for the law."""
    try:
        found = extrapolate(law, points, settings.share, draws=settings.draws, seed=settings.seed)
    except UserError as error:
        return {**_NOTHING, "not_predicted": str(error)}
    names = ("region", "n_points", "error", "bias", "covered")
    regions = [
        {name: getattr(one, name) for name in names} | {"curves": _curves(one.curves, one.prediction)}
        for one in found.regions
    ]
    return {**_NOTHING, "held_out": regions, "held_out_on_bound": list(found.fit.on_bound)}


def _curves(curves: Points, found: Prediction) -> list[dict[str, float | None]]:
    """Mean curves with their prediction: rows of size, step, resource, loss, predicted, low, high."""
    nothing = np.full(len(curves), np.nan)
    half, band = (nothing if width is None else width for width in (found.half, found.band))
    columns = {
        "size": curves.size, "step": curves.step, "resource": curves.resource, "loss": curves.loss,
        "predicted": np.exp(found.log_loss),
        "low": np.exp(found.log_loss - half), "high": np.exp(found.log_loss + half),
        "band_low": np.exp(found.log_loss - band), "band_high": np.exp(found.log_loss + band),
    }  # fmt: skip
    rows = zip(*columns.values(), strict=True)
    return [
        {name: None if np.isnan(value) else float(value) for name, value in zip(columns, row, strict=True)}
        for row in rows
    ]


def _parameters(fit: LawFit, draws: RunDraws | None) -> Iterator[dict[str, Any]]:
    """No interval for one on its bound."""
    found = intervals(fit, draws) if draws else {}
    for name, values in fit.values().items():
        for size, value in values.items() if isinstance(values, dict) else [(None, values)]:
            label = name if size is None else f"{name} of {size:,.0f}"
            interval = None if label in fit.on_bound else found.get((name, size))
            ends = {"low": interval and interval.low, "high": interval and interval.high}
            yield {"name": name, "size": size and round(size), "value": value, **ends}


def _row(one: ScalingQuantity) -> dict[str, Any]:
    ends = {"low": one.interval and one.interval.low, "high": one.interval and one.interval.high}
    return {"name": one.name, "value": one.value, **ends, "reason": one.reason}


def _table(points: Points, resource: str) -> pd.DataFrame:
    columns = {"run": [points.runs[number] for number in points.run], "size": points.size, "step": points.step}
    return pd.DataFrame({**columns, resource: points.resource, "loss": points.loss})
