"""Scaling laws: log L(N, X) fitted by robust least squares, every size with the same weight; bootstrap over runs.

L: loss, 1 − accuracy. N: size, parameters without embeddings. X: resource, FLOPs or prompts, in units of X_ref, the
geometric mean over the fitted points. Forms: arXiv 2509.25300 and its released code. Points are frames with columns
run, size, step, resource, loss.

Names of arrays: P points, T parameters as fitted (scales as logarithms), R draws of the bootstrap.
"""

# ruff: noqa: N803, N806

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isnan, log, nan, sqrt
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from compositionality.errors import UserError
from compositionality.stats.estimate import Floats, Interval, student

DECADES = 3.0  # a scale is searched this many powers of ten beyond the measured sizes, or resources
ROBUST_SCALE = 0.1  # residuals in log loss well above it count linearly, not squared (soft L1)
STARTS = 24  # random starts of a fit, besides the middle of the bounds
AT_BOUND = 1e-3  # a parameter closer to a bound than this share of its range counts as on the bound


BOUNDS = {
    "E": (-10.0, 10.0), "k": (-1.0, 2.0), "K_max": (0.0, 2.0), "E_max": (0.0, 10.0), "alpha": (0.0, 2.0),
    "beta": (0.0, 10.0), "L_inf": (0.0, 1.0), "lambda": (0.0, 1.5),
}  # fmt: skip
SCALES = {"N0": "size", "N1": "size", "A": "size", "S": "resource", "B": "resource", "D0": "resource"}
"""Positive parameters and their units; fitted as logarithms."""
PER_SIZE = {"E", "k", "lambda", "D0"}
"""Parameters with one value per size: a law with such a parameter cannot predict other sizes."""


@dataclass(frozen=True)
class Law:
    """``log_loss(N, X, parameters…)`` → (P,), all logarithms; a fit needs ``least_sizes`` sizes."""

    name: str
    formula: str
    parameters: tuple[str, ...]
    log_loss: Callable[..., Floats]
    least_sizes: int = 3

    @property
    def predicts_new_sizes(self) -> bool:
        return PER_SIZE.isdisjoint(self.parameters)


def _saturating(N: Floats, largest: Floats, half: Floats) -> Floats:
    """Return a curve that rises with N to ``largest``, and is half of it at N = ``half``."""
    return np.asarray(largest / (1 + np.exp(half - N)))


def _power(N: Floats, X: Floats, A: Floats, alpha: Floats, B: Floats, beta: Floats) -> Floats:
    return np.asarray(np.logaddexp(alpha * (A - N), beta * (B - X)))


def _log(share: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(share, 1e-12)))


LAWS = {
    law.name: law
    for law in (
        Law("log_linear", "log L = E − k log X, of each size", ("E", "k"),
            lambda _, X, E, k: E - k * X, least_sizes=1),
        Law("saturating_slope", "log L = E − k(N) log X, k = K_max / (1 + N0/N), E of each size", ("K_max", "N0", "E"),
            lambda N, X, K_max, N0, E: E - _saturating(N, K_max, N0) * X),
        Law("saturating_both", "log L = −E_max / (1 + N1/N) − k(N) log (X/S), k = K_max / (1 + N0/N)",
            ("K_max", "N0", "E_max", "N1", "S"),
            lambda N, X, K_max, N0, E_max, N1, S: -_saturating(N, E_max, N1) - _saturating(N, K_max, N0) * (X - S),
            least_sizes=4),
        Law("common_pivot", "L = (S/X)^k(N), k = K_max / (1 + N0/N)", ("K_max", "N0", "S"),
            lambda N, X, K_max, N0, S: _saturating(N, K_max, N0) * (S - X)),
        Law("power", "L = (A/N)^alpha + (B/X)^beta", ("A", "alpha", "B", "beta"), _power),
        Law("power_with_floor", "L = L_inf + (A/N)^alpha + (B/X)^beta", ("L_inf", "A", "alpha", "B", "beta"),
            lambda N, X, L_inf, *power: np.logaddexp(_power(N, X, *power), _log(L_inf))),
        Law("sigmoid", "L = L_inf + (N0/N)^alpha + lambda / (1 + (X/D0)^beta), lambda and D0 of each size",
            ("L_inf", "N0", "alpha", "beta", "lambda", "D0"),
            lambda N, X, L_inf, N0, alpha, beta, fall, D0: np.logaddexp(
                np.logaddexp(_log(L_inf), alpha * (N0 - N)), _log(fall) - np.logaddexp(0.0, beta * (X - D0)))),
    )
}  # fmt: skip
"""saturating_slope is the paper's law, sigmoid its appendix's; saturating_both, common_pivot are only in its code."""


@dataclass(frozen=True)
class LawFit:
    """A law with its parameters and their bounds, (T,)."""

    law: Law
    names: list[tuple[str, float | None]]  # parameter and size (None: shared by all sizes)
    sizes: Floats  # in ascending order
    reference: float  # X_ref
    low: Floats
    high: Floats
    theta: Floats
    weight: Floats  # of the fitted points, (P,)
    cost: float = nan
    starts: int = 0  # number of starts that ended at this optimum
    draws: Floats | None = None  # parameters fitted to resampled runs, (R, T)
    widening: float = 1.0  # factor on their spread, for few runs per size: √(n / (n − 1))
    df: int = 0

    @property
    def on_bound(self) -> list[str]:
        """Parameters on one of their bounds: the points do not determine them."""
        near_T = np.minimum(self.theta - self.low, self.high - self.theta) <= AT_BOUND * (self.high - self.low)
        return [label(*name) for name, near in zip(self.names, near_T, strict=True) if near]

    def refuse_bounds(self) -> None:
        if self.on_bound:
            raise UserError(f"{self.law.name}: {', '.join(self.on_bound)} on a bound: these points do not determine it")

    def predictor(self, points: pd.DataFrame) -> Callable[[Floats], Floats]:
        """Return the function from parameters (T,) to log losses (P,). UserError for a size without parameters."""
        size_P = points["size"].to_numpy(float)
        place_P = np.searchsorted(self.sizes, size_P).clip(max=len(self.sizes) - 1)
        if not self.law.predicts_new_sizes and (self.sizes[place_P] != size_P).any():
            raise UserError(f"{self.law.name}: has parameters per size, so it cannot predict other sizes")
        log_N, log_X = np.log(size_P), np.log(points["resource"].to_numpy(float) / self.reference)
        firsts = [[name for name, _ in self.names].index(name) for name in self.law.parameters]
        places = [
            first + place_P if name in PER_SIZE else first
            for name, first in zip(self.law.parameters, firsts, strict=True)
        ]
        return lambda theta_T: self.law.log_loss(log_N, log_X, *(theta_T[place] for place in places))

    def log_loss(self, points: pd.DataFrame) -> Floats:
        """Predict the log losses (P,)."""
        return self.predictor(points)(self.theta)

    def half_width(self, figure: Callable[[Floats], Any], noise: Any = 0.0) -> Any:
        """Return half of Student's 95 % interval of a function of the parameters, () or (C,); NaN without draws."""
        if self.draws is None:
            return nan
        variance = np.var([figure(theta_T) for theta_T in self.draws], axis=0, ddof=1) * self.widening**2
        return student(self.df) * np.sqrt(variance + noise)

    def interval(self, figure: Callable[[Floats], Any], noise: float = 0.0) -> Interval | None:
        """Return Student's interval, None without draws; ``noise``: variance of an observation around the law."""
        value, half = float(figure(self.theta)), float(self.half_width(figure, noise))
        return None if isnan(half) else Interval(value - half, value + half)


def label(parameter: str, size: float | None) -> str:
    return parameter if size is None else f"{parameter} of {size:,.0f}"


def initial(law: Law, points: pd.DataFrame) -> LawFit:
    """Return the middle of the bounds. UserError for fewer sizes, or fewer points, than the law needs."""
    sizes, resource_P = np.unique(points["size"]), points["resource"].to_numpy(float)
    if len(sizes) < law.least_sizes:
        raise UserError(f"{law.name}: needs {law.least_sizes} sizes of models; the points have {len(sizes)}")
    names = [(name, size) for name in law.parameters for size in (map(float, sizes) if name in PER_SIZE else [None])]
    n, n_points = len(names), len(points)
    if n_points <= n:
        raise UserError(f"{law.name}: has {n} parameters and needs more evaluations than that; there are {n_points}")
    reference, beyond = float(np.exp(np.log(resource_P).mean())), DECADES * log(10)
    logs = {"size": np.log(sizes), "resource": np.log(resource_P / reference)}
    bounds = {name: (logs[unit].min() - beyond, logs[unit].max() + beyond) for name, unit in SCALES.items()} | BOUNDS
    low, high = np.array([bounds[name] for name, _ in names]).T
    counts_P = points.groupby("size")["size"].transform("size").to_numpy()
    return LawFit(law, names, sizes, reference, low, high, (low + high) / 2, n_points / (len(sizes) * counts_P))


def fit_law(law: Law, points: pd.DataFrame, seed: int = 0) -> LawFit:
    """Return the best fit of several starts, reproducible by ``seed``. UserError if none converges."""
    first, random = initial(law, points), np.random.default_rng(seed)
    thetas = [first.theta, *(random.uniform(first.low, first.high) for _ in range(STARTS))]
    fits = [fit for theta in thetas if (fit := _solve(replace(first, theta=theta), points))]
    if not fits:
        raise UserError(f"{law.name}: the fit did not converge from any of {STARTS + 1} starts; choose another law")
    best = min(fits, key=lambda fit: fit.cost)
    return replace(best, starts=sum(fit.cost <= best.cost * (1 + 1e-3) + 1e-9 for fit in fits))


def _solve(start: LawFit, points: pd.DataFrame) -> LawFit | None:
    """Return the fit from the parameters and weights of ``start``, or None if it does not converge."""
    log_loss, target_P, root_P = start.predictor(points), np.log(points["loss"].to_numpy(float)), np.sqrt(start.weight)
    optimum = least_squares(
        lambda theta_T: root_P * (log_loss(theta_T) - target_P),
        np.clip(start.theta, start.low + 1e-9, start.high - 1e-9), bounds=(start.low, start.high),
        loss="soft_l1", f_scale=ROBUST_SCALE, x_scale="jac", max_nfev=400,
    )  # fmt: skip
    if optimum.status <= 0 or not np.isfinite(optimum.cost):
        return None
    return replace(start, theta=np.asarray(optimum.x), cost=float(optimum.cost))


def r_squared(fit: LawFit, points: pd.DataFrame) -> dict[float, float | None]:
    """Return R² in log loss per size; None for a size whose losses are all equal."""
    logs, sizes = np.log(points["loss"]), points["size"]
    errors = ((logs - fit.log_loss(points)) ** 2).groupby(sizes).sum()
    spreads = ((logs - logs.groupby(sizes).transform("mean")) ** 2).groupby(sizes).sum()
    return {size: 1 - errors[size] / spread if spread else None for size, spread in spreads.items()}


def akaike(fit: LawFit, points: pd.DataFrame) -> float:
    """Return AIC with normal residuals in log loss; overconfident, since evaluations of one run are correlated."""
    squares = float(fit.weight @ (np.log(points["loss"].to_numpy(float)) - fit.log_loss(points)) ** 2)
    return len(points) * log(max(squares / len(points), 1e-300)) + 2 * len(fit.theta)


def bootstrap(fit: LawFit, points: pd.DataFrame, draws: int = 200, seed: int = 0) -> LawFit:
    """Add refits to runs resampled with replacement within each size; none if a size has only one run."""
    runs = [names.unique() for _, names in points.groupby("size")["run"]]
    if min(map(len, runs)) < 2:
        return fit
    random, theta_RT = np.random.default_rng(seed), np.empty((draws, len(fit.theta)))
    for draw in range(draws):
        sample = np.concatenate([random.choice(names, len(names)) for names in runs])
        times_P = points["run"].map(pd.Series(sample).value_counts()).fillna(0.0).to_numpy()
        start = replace(fit, weight=(fit.weight * times_P)[times_P > 0])
        theta_RT[draw] = (_solve(start, points[times_P > 0]) or fit).theta
    mean = len(runs) / sum(1 / len(names) for names in runs)
    df = sum(map(len, runs)) - len(runs)
    return replace(fit, draws=theta_RT, widening=sqrt(mean / (mean - 1)), df=df)


def parameter_rows(fit: LawFit) -> list[dict[str, Any]]:
    """Return the parameters with intervals (symmetric in logarithms for scales; none for a parameter on a bound)."""
    rows = []
    for place, (name, size) in enumerate(fit.names):
        interval = None if label(name, size) in fit.on_bound else fit.interval(itemgetter(place))
        numbers = np.array([fit.theta[place], *(interval or (nan, nan))])
        if name in SCALES:
            numbers = np.exp(numbers) * (fit.reference if SCALES[name] == "resource" else 1.0)
        value, low, high = (None if isnan(number) else float(number) for number in numbers)
        rows.append({"name": name, "size": size and round(size), "value": value, "low": low, "high": high})
    return rows
