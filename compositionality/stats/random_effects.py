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

The seeds' part takes their values to be about normal. They are not where a seed now and then fails altogether: if one
in four gains nothing and the others 25 ± 6 points, the interval of four seeds holds the truth in 88 to 91 % of studies,
not 95, and if the others differ by ± 3 points only, in 75 % (simulated in tests/stats). So values by seed stand
beside every interval.

Legend: S seeds, P problems.
"""
# ruff: noqa: N803, N806

import math
from dataclasses import replace

import numpy as np

from compositionality.stats.intervals import Counts, Floats, Values, by_cluster, mean_change, share, student, wilson
from compositionality.stats.rare import no_difference
from compositionality.types import NESTED, PROBLEMS, SEEDS_AND_PROBLEMS, Estimate, Interval, Spread

INTERVALS = {
    PROBLEMS: "other problems, these seeds and splits: Wilson's on counts pooled by problem; Student's on differences "
    "by problem, Tango's where next to none differ; over clusters of problems that share a composition",
    SEEDS_AND_PROBLEMS: "other seeds and other problems: two-way random effects, Student's t for the seeds (k - 1) and "
    "the problems (n - 1), in quadrature; where one seed in four fails, it covers 88 to 91 % or less",
    NESTED: "other seeds, splits and problems: Student's t over the means of the seeds (k - 1), each over splits and "
    "problems of its own; where one seed in four fails, it covers 88 to 91 % or less",
}


def half_width_over_both(spread: Spread, k: float, n: float) -> float:
    """Half the interval for other seeds and other problems, with ``k`` seeds and ``n`` problems; 0: nothing varies."""
    of_seeds = spread.seeds * student(k) ** 2 / k if spread.k > 1 else 0.0
    return math.sqrt(of_seeds + spread.problems * student(n) ** 2 / n)


def half_width_over_problems(spread: Spread, n: float) -> float:
    """Half the interval for other problems, with ``n`` of them."""
    return math.sqrt(spread.pooled / n) * student(n) or no_difference(n)


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


def _spread(values_SG: Floats, n_problems: int) -> Spread | None:
    """Of clusters, if there are fewer of them than problems; None for one."""
    n = values_SG.shape[1]
    return replace(spread_of(values_SG), clustered=n < n_problems) if n > 1 else None


def share_over_seeds(correct_SP: Values, judged_SP: Values, clusters_P: Counts | None = None) -> Estimate | None:
    """Mean share of correct answers (or of what else was counted); None if a seed has none judged."""
    if not judged_SP.sum(axis=1).all():
        return None
    by_seed = tuple(float(value) for value in correct_SP.sum(axis=1) / judged_SP.sum(axis=1))
    pooled = share(correct_SP.sum(axis=0), judged_SP.sum(axis=0), clusters_P)
    if pooled is None:
        return None
    values_SG = by_cluster(_ratios(correct_SP, judged_SP), clusters_P)
    spread = _spread(values_SG, judged_SP.shape[1])
    mean, over_problems = sum(by_seed) / len(by_seed), pooled.over_problems
    over_both = _share_over_both(mean, spread, over_problems) if spread and spread.k > 1 else None
    return Estimate(mean, pooled.n_problems, over_problems, over_both, by_seed, spread)


def contrast_over_seeds(
    correct_SP: Values,
    judged_SP: Values,
    base_SP: Values,
    base_judged_SP: Values,
    times: float = 1.0,
    clusters_P: Counts | None = None,
) -> Estimate | None:
    """Mean of (share correct − ``times`` × the base's share), paired by seed and problem; None if under 2 problems."""
    both_P = (judged_SP > 0).all(axis=0) & (base_judged_SP > 0).all(axis=0)
    if np.count_nonzero(both_P) < 2:
        return None
    values_SP = _ratios(correct_SP[:, both_P], judged_SP[:, both_P])
    values_SP = values_SP - times * _ratios(base_SP[:, both_P], base_judged_SP[:, both_P])
    clusters = None if clusters_P is None else clusters_P[both_P]
    pooled, values_SG = mean_change(values_SP.mean(axis=0), -times, clusters=clusters), by_cluster(values_SP, clusters)
    spread = _spread(values_SG, values_SP.shape[1])
    by_seed = tuple(float(value) for value in values_SP.mean(axis=1))
    over_both = None
    if spread and spread.k > 1:
        half = half_width_over_both(spread, spread.k, spread.n)
        low, high = max(-times, pooled.value - half), min(1.0, pooled.value + half)
        over_both = at_least(Interval(low, high), pooled.over_problems)
    value = sum(by_seed) / len(by_seed)
    return Estimate(value, pooled.n_problems, pooled.over_problems, over_both, by_seed, spread)


def _ratios(correct_SP: Values, judged_SP: Values) -> Floats:
    """Share correct by seed and problem; what was not judged takes its seed's mean."""
    means = correct_SP.sum(axis=1, keepdims=True) / judged_SP.sum(axis=1, keepdims=True)
    return np.where(judged_SP > 0, correct_SP / np.maximum(judged_SP, 1), means)


def _share_over_both(mean: float, spread: Spread, over_problems: Interval) -> Interval:
    """Wilson's form of the half-width."""
    half = half_width_over_both(spread, spread.k, spread.n)
    samples = mean * (1 - mean) / half**2 if half > 0 else 0.0
    return at_least(wilson(mean, samples, quantile=1.0), over_problems) if samples > 0 else over_problems


def at_least(interval: Interval, other: Interval) -> Interval:
    """The interval that holds both."""
    return Interval(min(interval.low, other.low), max(interval.high, other.high))
