"""Intervals over seeds × problems, where every seed of a study answers the same problems.

Two sources of chance, crossed: which seeds were trained (k of them) and which problems were drawn (n of them).

"problems": the seeds are taken as they are; what would other problems have shown? Counts are pooled over the seeds by
problem; Wilson's interval (``stats.intervals.share``), or Student's on the differences by problem (``mean_change``).

"seeds and problems": what would another run, with other seeds and other problems, have shown? Two-way random effects:
Var(mean) = MS_seeds / (k n) + (MS_problems - MS_rest) / (k n), the first part with Student's quantile for k - 1 degrees
of freedom, the second with that for n - 1, added in quadrature (mean squares: Searle, Casella & McCulloch, Variance
Components, 1992, ch. 4; quadrature: Howe 1974, J. American Statistical Association 69). The first part holds the spread
of the seeds and the chance within an answer; with 3 seeds its quantile is 4.3: wide, and rightly so. A share gets
Wilson's form of the same width. Never narrower than "problems".

Legend: S seeds, P problems.
"""
# ruff: noqa: N803, N806

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compositionality.stats.intervals import CONFIDENCE, Interval, Values, mean_change, share, unseen, wilson

Floats = NDArray[np.float64]
PROBLEMS, SEEDS_AND_PROBLEMS = "problems", "seeds and problems"
INTERVALS = {
    PROBLEMS: "other problems, these seeds: Wilson's on counts pooled by problem; Student's on differences by problem",
    SEEDS_AND_PROBLEMS: "other seeds and other problems: two-way random effects, Student's t for the seeds (k - 1) and "
    "the problems (n - 1), in quadrature",
}


@dataclass(frozen=True)
class Spread:
    """What the width of an interval comes from: variances, as far as chance of one kind makes them."""

    k: int  # seeds
    n: int  # problems
    seeds: float  # of one seed's mean; 0 for one seed
    problems: float  # of one problem's value, in any seed
    pooled: float  # of one problem's value, in the mean over these seeds

    def wide(self, k: float, n: float) -> float:
        """Half the interval for other seeds and other problems, had there been ``k`` and ``n``; 0: nothing varies."""
        of_seeds = self.seeds * _quantile(k) ** 2 / k if self.k > 1 else 0.0
        return math.sqrt(of_seeds + self.problems * _quantile(n) ** 2 / n)

    def narrow(self, n: float) -> float:
        """Half the interval for other problems, had there been ``n``."""
        return math.sqrt(self.pooled / n) * _quantile(n) or unseen(n)


@dataclass(frozen=True)
class Finding:
    """A figure with both intervals; ``wide`` is None for one seed, ``spread`` under 2 problems."""

    values: tuple[float, ...]  # one for each seed
    narrow: Interval  # chance of problems only
    wide: Interval | None  # chance of seeds and problems
    spread: Spread | None = None

    @property
    def value(self) -> float:
        """Mean over the seeds."""
        return sum(self.values) / len(self.values)

    @property
    def best(self) -> Interval:
        """The interval that says most about another run: over seeds and problems if there are several seeds."""
        return self.wide or self.narrow

    @property
    def kind(self) -> str:
        """Which chance ``best`` covers."""
        return SEEDS_AND_PROBLEMS if self.wide else PROBLEMS


def _quantile(n: float) -> float:
    """Student's, for the mean of ``n`` values."""
    from scipy.stats import t

    return float(t.ppf(0.5 + CONFIDENCE / 2, n - 1))


def half_width(values_SP: Floats) -> float:
    """Half the interval of the mean of at least 2 × 2 values, for new seeds and new problems (0: nothing varies)."""
    return spread_of(values_SP).wide(*values_SP.shape)


def spread_of(values_SP: Floats) -> Spread:
    """The variances behind the interval of the mean of at least 1 × 2 values."""
    k, n = values_SP.shape
    seeds, problems = values_SP.mean(axis=1), values_SP.mean(axis=0)
    pooled = float(problems.var(ddof=1))
    if k == 1:
        return Spread(k, n, 0.0, pooled, pooled)
    rest_SP = values_SP - seeds[:, None] - problems[None, :] + values_SP.mean()
    of_problems = pooled - float((rest_SP**2).sum()) / ((k - 1) * (n - 1) * k)
    return Spread(k, n, float(seeds.var(ddof=1)), max(of_problems, 0.0), pooled)


def share_over_seeds(correct_SP: Values, judged_SP: Values) -> Finding | None:
    """Mean share of correct answers (or of what else was counted); None if a seed has none judged."""
    if not judged_SP.sum(axis=1).all():
        return None
    values = tuple(float(value) for value in correct_SP.sum(axis=1) / judged_SP.sum(axis=1))
    narrow = share(correct_SP.sum(axis=0), judged_SP.sum(axis=0))
    if narrow is None:
        return None
    values_SP = _ratios(correct_SP, judged_SP)
    spread = spread_of(values_SP) if values_SP.shape[1] > 1 else None
    return Finding(values, narrow, _wide_share(values, values_SP, narrow), spread)


def contrast_over_seeds(
    correct_SP: Values, judged_SP: Values, base_SP: Values, base_judged_SP: Values, times: float = 1.0
) -> Finding | None:
    """Mean of (share correct − ``times`` × the base's share), paired by seed and problem; None if under 2 problems."""
    both_P = (judged_SP > 0).all(axis=0) & (base_judged_SP > 0).all(axis=0)
    if np.count_nonzero(both_P) < 2:
        return None
    values_SP = _ratios(correct_SP[:, both_P], judged_SP[:, both_P])
    values_SP = values_SP - times * _ratios(base_SP[:, both_P], base_judged_SP[:, both_P])
    narrow = mean_change(values_SP.mean(axis=0), -times)
    values = tuple(float(value) for value in values_SP.mean(axis=1))
    return Finding(values, narrow, _wide_contrast(values_SP, narrow, times), spread_of(values_SP))


def _ratios(correct_SP: Values, judged_SP: Values) -> Floats:
    """Share correct by seed and problem; what nobody judged takes its seed's mean."""
    means = correct_SP.sum(axis=1, keepdims=True) / judged_SP.sum(axis=1, keepdims=True)
    return np.where(judged_SP > 0, correct_SP / np.maximum(judged_SP, 1), means)


def _wide_share(values: tuple[float, ...], values_SP: Floats, narrow: Interval) -> Interval | None:
    if min(values_SP.shape) < 2:
        return None
    mean, half = sum(values) / len(values), half_width(values_SP)
    samples = mean * (1 - mean) / half**2 if half > 0 else 0.0
    low, high = wilson(mean, samples, quantile=1.0) if samples > 0 else (narrow.low, narrow.high)
    return Interval(mean, min(low, narrow.low), max(high, narrow.high))


def _wide_contrast(values_SP: Floats, narrow: Interval, times: float) -> Interval | None:
    if min(values_SP.shape) < 2:
        return None
    half = half_width(values_SP)
    low, high = max(-times, narrow.value - half), min(1.0, narrow.value + half)
    return Interval(narrow.value, min(low, narrow.low), max(high, narrow.high))
