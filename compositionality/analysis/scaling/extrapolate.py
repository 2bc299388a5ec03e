"""Prediction of evaluations that a law was not fitted to: later ones, a larger model, both. Nothing is fitted again.

Names of arrays: P points, R draws, C points of mean curves.
"""

# ruff: noqa: N806

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from compositionality.analysis.scaling.fit import LawFit, RunDraws, bootstrap_runs, fit_law
from compositionality.analysis.scaling.laws import Law
from compositionality.analysis.scaling.points import Points
from compositionality.stats.estimate import Floats


class Region(StrEnum):
    """What was left out of a fit."""

    LATE = "later evaluations"
    LARGEST = "the largest model"
    BOTH = "later evaluations of the largest model"


@dataclass(frozen=True)
class HeldOut:
    """How a prediction compares with the mean curves of a region.

    ``error``: root of the mean square of log L predicted − log L; ``bias``: the mean, positive where the loss fell
    further than predicted. ``covered``: share of the points in their 95 % prediction interval, for the mean of as many
    runs; None where sizes have one run.
    """

    region: Region
    n_points: int
    error: float
    bias: float
    covered: float | None
    curves: Points
    prediction: "Prediction"


@dataclass(frozen=True)
class Prediction:
    """Log loss of mean curves, (C,), with half-widths of its intervals; None where sizes have one run.

    ``band``: of the expectation; ``half``: of the mean of as many runs as were made.
    """

    log_loss: Floats
    band: Floats | None
    half: Floats | None


@dataclass(frozen=True)
class Extrapolation:
    """A law fitted to the rest; what it says of each region."""

    fit: LawFit
    draws: RunDraws | None
    regions: tuple[HeldOut, ...]


def extrapolate(law: Law, points: Points, share: float, *, draws: int = 200, seed: int = 0) -> Extrapolation:
    """Fit to the first ``share`` of the steps of all sizes but the largest, predict the rest.

    Of a law that has parameters of each size, the largest model too is fitted, on the same share: LATE is all that it
    can predict.
    """
    early_P = points.early(share)
    largest_P = points.size == points.sizes[-1]
    regions = {
        Region.LATE: ~early_P & ~largest_P,
        Region.LARGEST: early_P & largest_P,
        Region.BOTH: ~early_P & largest_P,
    }
    fitted_P = early_P & ~largest_P
    if not law.predicts_new_sizes:
        regions, fitted_P = {Region.LATE: ~early_P}, early_P
    training = points.where(fitted_P)
    fit = fit_law(law, training, seed)
    drawn = bootstrap_runs(fit, training, draws, seed)
    found = (_held_out(region, fit, drawn, training, points.where(chosen_P)) for region, chosen_P in regions.items())
    return Extrapolation(fit, drawn, tuple(one for one in found if one))


def predict(fit: LawFit, draws: RunDraws | None, training: Points, points: Points, curves: Points) -> Prediction:
    """Of the mean curves of ``points`` by a law that was fitted to ``training``."""
    log_loss_C = fit.log_loss(curves)
    if draws is None:
        return Prediction(log_loss_C, None, None)
    drawn_RC = np.array([fit.frame.log_loss(one_T, curves.size, curves.resource) for one_T in draws.theta])
    between = between_runs(training)
    n_runs_C = [len(points.runs_of(size)) for size in curves.size]
    halves = [
        (draws.half(drawn_R), draws.half(drawn_R, between / n)) for drawn_R, n in zip(drawn_RC.T, n_runs_C, strict=True)
    ]
    band_C, half_C = np.array(halves).T
    return Prediction(log_loss_C, band_C, half_C)


def between_runs(points: Points) -> float:
    """Variance of log loss between runs of one size at the same step, mean over all of these."""
    found = list(_variances(points))
    return float(np.mean(found)) if found else 0.0


def _variances(points: Points) -> Iterator[float]:
    for size in points.sizes:
        mine = points.where(points.size == size)
        for step in np.unique(mine.step):
            logs = np.log(mine.loss[mine.step == step])
            if len(logs) > 1:
                yield float(logs.var(ddof=1))


def _held_out(region: Region, fit: LawFit, draws: RunDraws | None, training: Points, left: Points) -> HeldOut | None:
    if not len(left):
        return None
    curves = left.mean_curves()
    found = predict(fit, draws, training, left, curves)
    error_C = found.log_loss - np.log(curves.loss)
    covered = None if found.half is None else float((np.abs(error_C) <= found.half).mean())
    mean_square, mean = float((error_C**2).mean()), float(error_C.mean())
    return HeldOut(region, len(curves), mean_square**0.5, mean, covered, curves, found)
