"""Predictions of evaluations outside a law's fit, and the figures in claims. Nothing is refitted.

Names of arrays: P points, R draws, C points of mean curves.
"""

# ruff: noqa: N803, N806

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from compositionality.analysis.laws import LAWS, Law, LawFit, bootstrap, fit_law
from compositionality.errors import UserError
from compositionality.stats.estimate import Floats, Interval, student

LATE, LARGEST, BOTH = "later evaluations", "the largest model", "later evaluations of the largest model"
REGIONS = (LATE, LARGEST, BOTH)
FITTED = ""
Figure = tuple[float, Interval | None]


class FittedStudy:
    """Points and cached fits by law: ``fitted`` to all points, ``predicted`` from some (see ``extrapolate``)."""

    def __init__(self, points: pd.DataFrame, share: float = 0.5, draws: int = 200, seed: int = 0) -> None:
        self.points = points
        self.fitted = cache(lambda law: bootstrap(fit_law(LAWS[law], points, seed), points, draws, seed))
        self.predicted = cache(lambda law: extrapolate(LAWS[law], points, share, draws=draws, seed=seed))


def extrapolate(
    law: Law, points: pd.DataFrame, share: float, *, draws: int = 200, seed: int = 0
) -> tuple[LawFit, pd.DataFrame]:
    """Fit to the first ``share`` of the steps of all sizes but the largest; predict the rest, by region.

    A law with parameters per size is fitted to the first steps of the largest model too, and predicts its later ones.
    """
    late_P = points["step"] > share * points.groupby("size")["step"].transform("max")
    largest_P = points["size"] == points["size"].max()
    if law.predicts_new_sizes:
        regions_P = np.select([late_P & largest_P, largest_P, late_P], [BOTH, LARGEST, LATE], FITTED)
    else:
        regions_P = np.where(late_P, LATE, FITTED)
    training = points[regions_P == FITTED]
    fit = bootstrap(fit_law(law, training, seed), training, draws, seed)
    return fit, predict(fit, training, points.assign(region=regions_P)[regions_P != FITTED])


def predict(fit: LawFit, training: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """Predict the mean curves of ``points`` by a law that was fitted to ``training``.

    Adds log L ``predicted``, its ``error``, and half of the widths of two 95 % intervals in log L: ``band`` for the
    expectation, ``half`` for the mean over the actual number of runs (NaN if a size has one run).
    """
    curves = mean_curves(points)
    log_loss = fit.predictor(curves)
    variances = np.log(training["loss"]).groupby([training["size"], training["step"]]).var(ddof=1)
    curves["predicted"] = log_loss(fit.theta)
    curves["error"] = curves["predicted"] - np.log(curves["loss"])
    curves["band"] = fit.half_width(log_loss)
    curves["half"] = fit.half_width(log_loss, np.nan_to_num(variances.mean()) / curves["runs"].to_numpy())
    return curves


def mean_curves(points: pd.DataFrame) -> pd.DataFrame:
    """Average the ``runs`` of a size, in logarithms, at each step of a region that all of them reached."""
    logs = points.assign(resource=np.log(points["resource"]), loss=np.log(points["loss"]))
    logs["n_runs"] = logs.groupby(["region", "size"])["run"].transform("nunique")
    steps = logs.groupby(["region", "size", "step"], as_index=False)
    curves = steps.agg(
        resource=("resource", "mean"), loss=("loss", "mean"), runs=("run", "size"), n_runs=("n_runs", "first")
    )
    curves = curves[curves["runs"] == curves["n_runs"]].reset_index(drop=True)
    return curves.assign(resource=np.exp(curves["resource"]), loss=np.exp(curves["loss"]))


def error_rows(curves: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the errors of the predictions by region.

    ``error``: root mean square of log L predicted − log L; ``bias``: its mean, positive if the loss fell
    further than predicted; ``covered``: share of the points within their intervals, None without intervals.
    """
    rows = []
    for region in REGIONS:
        left_out = curves[curves["region"] == region]
        errors = left_out["error"]
        if len(errors):
            covered = None if left_out["half"].isna().any() else float((errors.abs() <= left_out["half"]).mean())
            row = {"region": region, "n_points": len(errors), "error": float((errors**2).mean() ** 0.5)}
            rows.append(row | {"bias": float(errors.mean()), "covered": covered, "curves": curve_rows(left_out)})
    return rows


def curve_rows(curves: pd.DataFrame) -> Any:
    """Return the mean curves with their predictions as losses, with None for missing intervals."""
    rows, predicted = curves[["size", "step", "resource", "loss"]].astype(float), curves["predicted"]
    rows["predicted"] = np.exp(predicted)
    for prefix, half in (("", curves["half"]), ("band_", curves["band"])):
        rows[f"{prefix}low"], rows[f"{prefix}high"] = np.exp(predicted - half), np.exp(predicted + half)
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


FIGURES: dict[str, Callable[[FittedStudy], Figure]] = {
    "slope-rise": lambda study: _parameter_figure(
        study.fitted("log_linear"), lambda fit, theta_T: theta_T[-1] - theta_T[-len(fit.sizes)]
    ),
    "slope-share": lambda study: _parameter_figure(
        study.fitted("saturating_slope"),
        lambda fit, theta_T: 1 / (1 + np.exp(theta_T[fit.names.index(("N0", None))]) / fit.sizes[-1]),
    ),
    "late-error": lambda study: _mean_error(study, "saturating_slope", LATE),
    "largest-error": lambda study: _mean_error(study, "saturating_both", LARGEST),
    "late-largest-error": lambda study: _mean_error(study, "saturating_both", BOTH),
    "start-gap": lambda study: _gap(study.points, min),
    "end-gap": lambda study: _gap(study.points, max),
}
"""The figures in claims. *slope-rise*: slope of the largest size − slope of the smallest (log_linear). *slope-share*:
k(N) / K_max of the largest size (saturating_slope). *late-error*, *largest-error*, *late-largest-error*: mean of log L
predicted − log L over later evaluations (saturating_slope), over the largest size and over its later evaluations
(saturating_both). *start-gap*, *end-gap*: log L of the largest size − log L of the next size, at the smallest and the
largest amount of the resource that both have spent."""


def figures(study: FittedStudy) -> list[dict[str, Any]]:
    return [figure_row(study, name) for name in FIGURES]


def figure_row(study: FittedStudy, name: str) -> dict[str, Any]:
    """Return a figure with its 95 % interval over runs: name, value, low, high, and the reason for no result."""
    row: dict[str, Any] = {"name": name, "value": None, "low": None, "high": None}
    try:
        row["value"], interval = FIGURES[name](study)
    except UserError as error:
        return row | {"reason": str(error)}
    if interval is None:
        return row | {"reason": "a size has only one run: no interval"}
    if not interval.low < interval.high:
        return row | {"reason": "all runs are equal: no interval"}
    return row | {"low": interval.low, "high": interval.high, "reason": ""}


def _parameter_figure(fit: LawFit, figure: Callable[[LawFit, Floats], float]) -> Figure:
    fit.refuse_bounds()
    return float(figure(fit, fit.theta)), fit.interval(partial(figure, fit))


def _mean_error(study: FittedStudy, law: str, region: str) -> Figure:
    """Return the mean error in a region; its interval has the spread of the fitted and of the left-out runs."""
    fit, curves = study.predicted(law)
    fit.refuse_bounds()
    curves = curves[curves["region"] == region]
    if curves.empty:
        raise UserError(f"no {region} were left out")
    left_out = study.points.merge(curves[["size", "step"]])
    means = np.log(left_out["loss"]).groupby([left_out["size"], left_out["run"]]).mean().groupby("size")
    weights = curves.groupby("size").size() / len(curves)  # sizes are weighted by their number of points
    noise = float((weights**2 * means.var(ddof=1) / means.size()).sum(skipna=False))
    log_loss, logs_C = fit.predictor(curves), np.log(curves["loss"].to_numpy())
    interval = fit.interval(lambda theta_T: (log_loss(theta_T) - logs_C).mean(), noise)
    return float(curves["error"].mean()), interval


def _gap(points: pd.DataFrame, end: Callable[[Iterable[float]], float]) -> Figure:
    """Compare the two largest sizes at an end of the range of the resource that all their runs cover."""
    sizes = np.unique(points["size"])[-2:]
    if len(sizes) < 2:
        raise UserError("only one size")
    points = points[points["size"].isin(sizes)]
    logs = points.assign(resource=np.log(points["resource"]), loss=np.log(points["loss"])).groupby(["size", "run"])
    common = logs["resource"].first().max(), logs["resource"].last().min()
    if common[0] >= common[1]:
        raise UserError("no amount of the resource was spent by both of the two largest sizes")
    losses = logs[["resource", "loss"]].apply(lambda run: np.interp(end(common), run["resource"], run["loss"]))
    by_size = losses.groupby("size").agg(["mean", "var", "size"])
    value = float(by_size["mean"].diff().iloc[1])
    if by_size["size"].min() < 2:
        return value, None
    error = float((by_size["var"] / by_size["size"]).sum() ** 0.5)
    half = student(by_size["size"].sum() - 2) * error
    return value, Interval(value - half, value + half)
