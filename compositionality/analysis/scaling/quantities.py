"""The numbers that claims about scaling are about, each with its 95 % interval over runs.

Names of arrays: P points, R draws, C points of mean curves.
"""

# ruff: noqa: N806

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy.stats import t

from compositionality.analysis.scaling.extrapolate import HeldOut, Region, extrapolate
from compositionality.analysis.scaling.fit import LawFit, RunDraws, bootstrap_runs, fit_law
from compositionality.analysis.scaling.laws import law_named
from compositionality.analysis.scaling.points import Points
from compositionality.errors import UserError
from compositionality.stats.estimate import CONFIDENCE, Floats
from compositionality.types import Interval

ONE_RUN, ALIKE = "a size has one run only: no interval", "all runs are alike: no interval"


@dataclass(frozen=True)
class ScalingQuantity:
    """``reason``: why it is no result, and has no value or no interval."""

    name: str
    value: float | None = None
    interval: Interval | None = None
    reason: str = ""


def quantities(points: Points, share: float, draws: int, seed: int) -> list[ScalingQuantity]:
    """All of them, those that cannot be had with their reason.

    *slope-rise*: slope of the largest size − slope of the smallest, of log_linear. *slope-share*: k(N) / K_max of the
    largest size, of saturating_slope. *late-error*, *largest-error*, *late-largest-error*: mean of log L predicted −
    log L of later evaluations (saturating_slope), of the largest size and of its later evaluations (saturating_both).
    *start-gap*, *end-gap*: log L of the largest size − that of the next at the least and the most of the resource that
    both have spent.
    """
    makers: dict[str, Callable[[], tuple[float, Interval | None]]] = {
        "slope-rise": lambda: _of_fit("log_linear", points, draws, seed, _rise),
        "slope-share": lambda: _of_fit("saturating_slope", points, draws, seed, _share),
        "late-error": lambda: _predicted("saturating_slope", points, share, draws, seed, Region.LATE),
        "largest-error": lambda: _predicted("saturating_both", points, share, draws, seed, Region.LARGEST),
        "late-largest-error": lambda: _predicted("saturating_both", points, share, draws, seed, Region.BOTH),
        "start-gap": lambda: _gap(points, min),
        "end-gap": lambda: _gap(points, max),
    }
    return [_quantity(name, maker) for name, maker in makers.items()]


def _quantity(name: str, maker: Callable[[], tuple[float, Interval | None]]) -> ScalingQuantity:
    try:
        value, interval = maker()
    except UserError as error:
        return ScalingQuantity(name, reason=str(error))
    if interval and not interval.low < interval.high:
        return ScalingQuantity(name, value, reason=ALIKE)
    return ScalingQuantity(name, value, interval, "" if interval else ONE_RUN)


def _of_fit(
    law: str, points: Points, draws: int, seed: int, of: Callable[[LawFit, Floats], float]
) -> tuple[float, Interval | None]:
    fit = fit_law(law_named(law), points, seed)
    _refuse_bounds(fit)
    drawn, value = bootstrap_runs(fit, points, draws, seed), of(fit, fit.theta)
    return value, drawn.interval(value, [of(fit, theta) for theta in drawn.theta]) if drawn else None


def _refuse_bounds(fit: LawFit) -> None:
    if fit.on_bound:
        raise UserError(f"{fit.frame.law.name}: {', '.join(fit.on_bound)} on a bound: these points do not determine it")


def _rise(fit: LawFit, theta: Floats) -> float:
    slopes = [value for (one, _), value in zip(fit.frame.names, theta, strict=True) if one.name == "k"]
    return float(slopes[-1] - slopes[0])


def _share(fit: LawFit, theta: Floats) -> float:
    (half,) = (value for (one, _), value in zip(fit.frame.names, theta, strict=True) if one.name == "N0")
    return float(1 / (1 + np.exp(half) / fit.frame.sizes[-1]))


def _predicted(
    law: str, points: Points, share: float, draws: int, seed: int, region: Region
) -> tuple[float, Interval | None]:
    found = extrapolate(law_named(law), points, share, draws=draws, seed=seed)
    _refuse_bounds(found.fit)
    one = next((held for held in found.regions if held.region is region), None)
    if one is None:
        raise UserError(f"no {region} were left out")
    return one.bias, _about(one, found.fit, found.draws, points) if found.draws else None


def _about(one: HeldOut, fit: LawFit, drawn: RunDraws, points: Points) -> Interval:
    """Of the mean error: from the fit's runs, and from those that were left out."""
    mean_R = [float(fit.frame.log_loss(theta, one.curves.size, one.curves.resource).mean()) for theta in drawn.theta]
    of_sizes = [np.array(list(_means(points, one.curves, size))) for size in one.curves.sizes]
    own = sum(float(means.var(ddof=1)) / len(means) for means in of_sizes) / len(of_sizes) ** 2
    half = drawn.half(mean_R, own)
    return Interval(one.bias - half, one.bias + half)


def _means(points: Points, curves: Points, size: float) -> Iterator[float]:
    """Mean log loss of each run of a size, over the steps of its mean curve."""
    steps = curves.step[curves.size == size]
    for run in points.runs_of(size):
        yield float(np.log(points.loss[(points.run == run) & np.isin(points.step, steps)]).mean())


def _gap(points: Points, end: Callable[[tuple[float, float]], float]) -> tuple[float, Interval | None]:
    """At an end of the range of the resource that every run of the two largest sizes covers."""
    if len(points.sizes) < 2:
        raise UserError("one size only")
    runs = [points.runs_of(size) for size in points.sizes[-2:]]
    curves = [
        [(np.log(points.resource[points.run == run]), np.log(points.loss[points.run == run])) for run in of]
        for of in runs
    ]
    ends = [(x[0], x[-1]) for of in curves for x, _ in of]
    common = (max(first for first, _ in ends), min(last for _, last in ends))
    if common[0] >= common[1]:
        raise UserError("the two largest sizes have spent no common amount")
    lower, upper = (np.array([np.interp(end(common), x, y) for x, y in of]) for of in curves)
    value = fmean(upper) - fmean(lower)
    if min(len(lower), len(upper)) < 2:
        return value, None
    variances = [float(of.var(ddof=1)) / len(of) for of in (lower, upper)]
    half = float(t.ppf(0.5 + CONFIDENCE / 2, len(lower) + len(upper) - 2)) * sum(variances) ** 0.5
    return value, Interval(value - half, value + half)
