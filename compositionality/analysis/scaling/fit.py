"""Fitting a law: robust least squares in log loss from several starts; bootstrap over runs.

Each size has the same weight, whatever its number of evaluations. Names of arrays: P points, T parameters as fitted,
R draws.
"""

# ruff: noqa: N803, N806

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log

import numpy as np
from scipy.optimize import OptimizeResult, least_squares
from scipy.stats import t

from compositionality.analysis.scaling.laws import DECADES, Law, Parameter
from compositionality.analysis.scaling.points import Points, Rows
from compositionality.errors import UserError
from compositionality.stats.estimate import CONFIDENCE, Floats
from compositionality.types import Interval

ROBUST_SCALE = 0.1
"""Residuals in log loss well above it count linearly, not squared (soft L1)."""
STARTS = 24
AT_BOUND = 1e-3
"""Of the range between its bounds: a parameter as near as that to one of them is on it."""


@dataclass(frozen=True)
class Frame:
    """What a parameter vector means: the law, the sizes in order, X_ref, and bounds, (T,) each."""

    law: Law
    sizes: Floats
    reference: float
    low: Floats
    high: Floats

    @property
    def names(self) -> list[tuple[Parameter, float | None]]:
        """Parameter and size (None: of all) of every place of a vector."""
        return [
            (one, size) for one in self.law.parameters for size in (map(float, self.sizes) if one.of_size else [None])
        ]

    def log_loss(self, theta_T: Floats, size_P: Floats, resource_P: Floats) -> Floats:
        """(P,): what the law predicts. UserError for a size that it has no parameters for."""
        values, place = dict[str, Floats](), 0
        known_P = np.searchsorted(self.sizes, size_P).clip(max=len(self.sizes) - 1)
        if not self.law.predicts_new_sizes and (self.sizes[known_P] != size_P).any():
            raise UserError(f"{self.law.name}: has parameters of each size, so it predicts no other size")
        for one in self.law.parameters:
            n = len(self.sizes) if one.of_size else 1
            found_T = theta_T[place : place + n]
            values[one.name] = found_T[known_P] if one.of_size else found_T[0]
            place += n
        return self.law.log_loss(values, np.log(size_P), np.log(resource_P / self.reference))


@dataclass(frozen=True)
class LawFit:
    """A law with its parameters. ``weight``: of the points it was fitted to; ``starts``: how many of the starts ended
    at this optimum; ``on_bound``: names of parameters that the data do not hold within their bounds."""

    frame: Frame
    theta: Floats
    weight: Floats
    cost: float
    starts: int
    on_bound: tuple[str, ...]

    def log_loss(self, points: Points) -> Floats:
        """(P,): predicted."""
        return self.frame.log_loss(self.theta, points.size, points.resource)

    def values(self) -> dict[str, float | dict[float, float]]:
        """Parameters by name, in their units; of each size by size."""
        found: dict[str, float | dict[float, float]] = {}
        for (one, size), value in zip(self.frame.names, self.theta, strict=True):
            number = natural(one, value, self.frame.reference)
            if size is None:
                found[one.name] = number
            else:
                of_size = found.setdefault(one.name, {})
                assert isinstance(of_size, dict)
                of_size[size] = number
        return found


def natural(one: Parameter, value: float, reference: float) -> float:
    """A fitted value in its unit: parameters, or the resource's."""
    if not one.scale:
        return float(value)
    return float(np.exp(value)) * (reference if one.scale == "resource" else 1.0)


def frame_for(law: Law, points: Points) -> Frame:
    """UserError for fewer sizes, or fewer points, than the law needs."""
    sizes = points.sizes
    if len(sizes) < law.least_sizes:
        raise UserError(f"{law.name}: needs {law.least_sizes} sizes of models; here are {len(sizes)}")
    frame = Frame(law, sizes, float(np.exp(np.log(points.resource).mean())), np.zeros(0), np.zeros(0))
    n = len(frame.names)
    if len(points) <= n:
        raise UserError(f"{law.name}: has {n} parameters and needs more evaluations than that; here are {len(points)}")
    spans = {"size": np.log(sizes), "resource": np.log(points.resource / frame.reference)}
    beyond = DECADES * log(10)
    bounds = np.array(
        [
            (spans[one.scale].min() - beyond, spans[one.scale].max() + beyond) if one.scale else (one.low, one.high)
            for one, _ in frame.names
        ]
    )
    return replace(frame, low=bounds[:, 0], high=bounds[:, 1])


def fit_law(law: Law, points: Points, seed: int = 0, starts: int = STARTS) -> LawFit:
    """The best of several starts, the same for the same seed. UserError if none converges."""
    frame = frame_for(law, points)
    weight_P = equal_weights(points)
    random = np.random.default_rng(seed)
    first = [random.uniform(frame.low, frame.high) for _ in range(starts)]
    found = [one for theta in [_middle(frame), *first] if (one := _solve(frame, points, weight_P, theta)) is not None]
    if not found:
        raise UserError(f"{law.name}: the fit did not converge from any of {starts + 1} starts; choose another law")
    best = min(found, key=lambda one: float(one.cost))
    agreeing = sum(bool(one.cost <= best.cost * (1 + 1e-3) + 1e-9) for one in found)
    return LawFit(frame, best.x, weight_P, float(best.cost), agreeing, _on_bound(frame, best.x))


def refit(fit: LawFit, points: Points, weight_P: Floats) -> Floats:
    """(T,): parameters with other weights, from those of ``fit``; these themselves if that does not converge."""
    found = _solve(fit.frame, points, weight_P, fit.theta)
    return fit.theta if found is None else np.asarray(found.x)


def equal_weights(points: Points) -> Floats:
    """(P,): the same sum for every size, mean 1."""
    sizes, at_P, counts = np.unique(points.size, return_inverse=True, return_counts=True)
    weights: Floats = len(points) / (len(sizes) * counts[at_P])
    return weights


def _middle(frame: Frame) -> Floats:
    found: Floats = (frame.low + frame.high) / 2
    return found


def _solve(frame: Frame, points: Points, weight_P: Floats, start_T: Floats) -> OptimizeResult | None:
    target_P, root_P = np.log(points.loss), np.sqrt(weight_P)

    def residuals(theta_T: Floats) -> Floats:
        found: Floats = root_P * (frame.log_loss(theta_T, points.size, points.resource) - target_P)
        return found

    inside = np.clip(start_T, frame.low + 1e-9, frame.high - 1e-9)
    found = least_squares(
        residuals, inside, bounds=(frame.low, frame.high), loss="soft_l1", f_scale=ROBUST_SCALE, x_scale="jac",
        max_nfev=400,
    )  # fmt: skip
    return found if found.status > 0 and np.isfinite(found.cost) else None


def _on_bound(frame: Frame, theta_T: Floats) -> tuple[str, ...]:
    near_T = np.minimum(theta_T - frame.low, frame.high - theta_T) <= AT_BOUND * (frame.high - frame.low)
    return tuple(
        one.name if size is None else f"{one.name} of {size:,.0f}"
        for (one, size), near in zip(frame.names, near_T, strict=True)
        if near
    )


def r_squared(fit: LawFit, points: Points) -> dict[float, float]:
    """Of each size by itself, in log loss; -inf for a size whose losses are all alike."""
    error_P = (np.log(points.loss) - fit.log_loss(points)) ** 2
    found = dict[float, float]()
    for size in points.sizes:
        mine = points.size == size
        spread = float(((logs := np.log(points.loss[mine])) - logs.mean()) @ (logs - logs.mean()))
        found[float(size)] = 1 - float(error_P[mine].sum()) / spread if spread else -inf
    return found


def akaike(fit: LawFit, points: Points) -> float:
    """AIC with normal residuals in log loss. Evaluations of one run are alike, so differences of it are too sure."""
    n = len(points)
    squares = float(fit.weight @ (np.log(points.loss) - fit.log_loss(points)) ** 2)
    return n * log(max(squares / n, 1e-300)) + 2 * len(fit.theta)


@dataclass(frozen=True)
class RunDraws:
    """Parameters fitted to resampled runs, (R, T), with what turns their spread into an interval."""

    theta: Floats
    widening: float
    """Of the spread, for the few runs of a size: √(n / (n − 1))."""
    freedom: int

    def interval(self, value: float, values_R: Sequence[float] | Floats) -> Interval:
        """Student's interval about ``value`` with the spread of the draws."""
        half = self.half(values_R)
        return Interval(value - half, value + half)

    def half(self, values_R: Sequence[float] | Floats, own_variance: float = 0.0) -> float:
        """Half of the interval's width; ``own_variance``: of what is predicted, about its expectation."""
        spread = float(np.var(values_R, ddof=1)) * self.widening**2 + own_variance
        quantile = float(t.ppf(0.5 + CONFIDENCE / 2, self.freedom))
        return quantile * float(spread**0.5)


def bootstrap_runs(fit: LawFit, points: Points, draws: int = 200, seed: int = 0) -> RunDraws | None:
    """Runs drawn anew within each size, as many as it has; None where a size has one run only."""
    runs = [points.runs_of(size) for size in points.sizes]
    if min(map(len, runs)) < 2:
        return None
    random = np.random.default_rng(seed)
    theta_RT = np.array([_drawn(fit, points, runs, random) for _ in range(draws)])
    mean = len(runs) / sum(1 / len(mine) for mine in runs)
    return RunDraws(theta_RT, (mean / (mean - 1)) ** 0.5, sum(map(len, runs)) - len(runs))


def _drawn(fit: LawFit, points: Points, runs: Sequence[Rows], random: np.random.Generator) -> Floats:
    times = np.zeros(len(points.runs))
    for mine in runs:
        np.add.at(times, random.choice(mine, len(mine)), 1.0)
    chosen = points.where(times[points.run] > 0)
    return refit(fit, chosen, equal_weights(points)[times[points.run] > 0] * times[chosen.run])


def intervals(fit: LawFit, draws: RunDraws) -> Mapping[tuple[str, float | None], Interval]:
    """Of every parameter, in its unit; scales have theirs in logarithms, so none is below 0."""
    found = dict[tuple[str, float | None], Interval]()
    for place, (one, size) in enumerate(fit.frame.names):
        span = draws.interval(float(fit.theta[place]), draws.theta[:, place])
        low, high = (natural(one, value, fit.frame.reference) for value in (span.low, span.high))
        found[one.name, size] = Interval(low, high)
    return found
