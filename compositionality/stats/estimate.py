"""Shares and differences of shares with their 95 % intervals: over problems, over seeds, over seeds with splits.

``over_problems``: the same models on other problems. Uses the spread between clusters of problems (problems that share
what makes them hard, such as their composition): cluster-robust, Cameron & Miller 2015, J. Human Resources 50. If few
problems differ, this spread is not informative: the intervals change continuously to intervals for few events.

``over_seeds``: other seeds and problems, if all seeds answer the same problems. Two-way random effects: Var(mean) =
MS_seeds / (k n) + (MS_problems - MS_rest) / (k n), each part with Student's quantile for k - 1 and n - 1, added in
squares (Searle, Casella & McCulloch, Variance Components, 1992, ch. 4; Howe 1974, J. American Statistical Ass. 69).

``over_splits``: other seeds, splits and problems, if every replicate has its own problems: Student's interval over the
means of the seeds, which covers all variation within a seed.

Over seeds the interval of a share has Wilson's form with the same width; no interval is narrower than the one over
problems. Seeds are assumed to be roughly normal; README.md shows the coverage if they are not.

Legend: P problems, G clusters, S seeds, N independent parts, K columns (values of k).
"""
# ruff: noqa: N803, N806

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Values = Counts | Floats
CONFIDENCE = 0.95
Z = 1.959963984540054  # the normal quantile of a 95 % interval
TIE = 1e-12
PROBLEMS, SEEDS_AND_PROBLEMS, NESTED = "problems", "seeds and problems", "seeds, splits and problems"
"""Sources of chance that an interval covers."""


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share, or a difference of shares, with its 95 % intervals."""

    value: float  # the mean of the seeds
    n_problems: int  # of a replicate
    over_problems: Interval  # the same models on other problems
    over_seeds: Interval | None = None  # other seeds too; None for one seed
    df: float = float("nan")  # degrees of freedom of Student's t for ``interval``; NaN: not known
    by_replicate: tuple[tuple[float, ...], ...] = ()  # the value by seed and split
    nested: bool = False  # every replicate has problems of its own

    @property
    def interval(self) -> Interval:
        """The interval that covers most: over seeds and problems where there are several seeds."""
        return self.over_seeds or self.over_problems

    @property
    def source(self) -> str:
        """The sources of chance that ``interval`` covers."""
        return PROBLEMS if not self.over_seeds else NESTED if self.nested else SEEDS_AND_PROBLEMS

    @property
    def by_seed(self) -> tuple[float, ...]:
        """The mean of each seed over its splits."""
        return tuple(sum(splits) / len(splits) for splits in self.by_replicate)

    @property
    def low(self) -> float:
        return self.interval.low

    @property
    def high(self) -> float:
        return self.interval.high


class Band(NamedTuple):
    """Means with their intervals, each (K,)."""

    value: Floats
    low: Floats
    high: Floats


class ByProblem(NamedTuple):
    """One model's values in one replicate; Σ values / Σ weights is its mean. Each (P,)."""

    values: Values
    weights: Values
    clusters: Counts | None = None


def difference(factors: Sequence[float], models: Sequence[ByProblem]) -> ByProblem:
    """Add up factor × rate of the models, problem by problem; weight 0 where a model has no verdict."""
    judged_P = np.all([model.weights > 0 for model in models], axis=0)
    rates_P = [model.values / np.where(judged_P, model.weights, 1) for model in models]
    values_P = sum(factor * rate_P for factor, rate_P in zip(factors, rates_P, strict=True))
    return ByProblem(values_P * judged_P, judged_P.astype(np.int64), models[0].clusters)


def over_problems(
    values_P: Values, weights_P: Values, clusters_P: Counts | None = None, low: float = 0.0, high: float = 1.0
) -> Estimate | None:
    """Estimate Σ values / Σ weights; a difference if ``low`` < 0. None without judged problems (differences: two)."""
    if low < 0:
        judged_P = weights_P > 0
        values_P, weights_P = values_P[judged_P], weights_P[judged_P]
        clusters_P = None if clusters_P is None else clusters_P[judged_P]
    n_problems = int(np.count_nonzero(weights_P))
    if n_problems < (2 if low < 0 else 1):
        return None
    value, *ends = (float(column[0]) for column in band(values_P[:, None], weights_P, clusters_P, low, high))
    df = float(np.count_nonzero(_sums(weights_P, clusters_P)) - 1) or (math.nan if low < 0 else 1.0)
    return Estimate(value, n_problems, Interval(*ends), df=df, by_replicate=((value,),))


def over_seeds(
    values_SP: Values, weights_SP: Values, clusters_P: Counts | None = None, low: float = 0.0, high: float = 1.0
) -> Estimate | None:
    """Estimate the mean over seeds that answer the same problems; None if a seed has no judged problem.

    A difference uses only problems that are judged in every seed.
    """
    k = len(values_SP)
    if low < 0:
        judged_P = (weights_SP > 0).all(axis=0)
        values_SP, weights_SP = values_SP[:, judged_P], weights_SP[:, judged_P]
        clusters_P = None if clusters_P is None else clusters_P[judged_P]
    pooled = over_problems(values_SP.sum(axis=0), weights_SP.sum(axis=0), clusters_P, low, high)
    if pooled is None or not weights_SP.any(axis=1).all():
        return None
    mean_S = values_SP.sum(axis=1) / weights_SP.sum(axis=1)
    value = float(mean_S.mean())
    estimate = replace(pooled, value=value, by_replicate=tuple((float(mean),) for mean in mean_S))
    rates_SP = np.repeat(mean_S[:, None], values_SP.shape[1], axis=1)  # the seed's mean for problems not judged
    np.divide(values_SP, weights_SP, out=rates_SP, where=weights_SP > 0)
    distances_SG = _sums((rates_SP - rates_SP.mean(axis=1, keepdims=True)).T, clusters_P).T
    n = distances_SG.shape[1]
    if k == 1 or n == 1:
        return estimate
    spread_SG = distances_SG * (n / rates_SP.shape[1])  # scaled to clusters, as the mean is over problems
    spread_G = spread_SG.mean(axis=0)
    interaction = float(((spread_SG - spread_G) ** 2).sum()) / ((k - 1) * (n - 1) * k)
    seed_part = float(rates_SP.mean(axis=1).var(ddof=1)) / k
    problem_part = max(float(spread_G.var(ddof=1)) - interaction, 0.0) / n
    seed_part, problem_part = seed_part * student(k - 1) ** 2, problem_part * student(n - 1) ** 2
    squares = max(seed_part**2 / (k - 1) + problem_part**2 / (n - 1), TIE**4)
    df = (seed_part + problem_part) ** 2 / squares  # Satterthwaite's
    return _add_seed_interval(estimate, math.sqrt(seed_part + problem_part), df, low, high)


def over_splits(seeds: Sequence[Sequence[Estimate | None]], low: float = 0.0, high: float = 1.0) -> Estimate | None:
    """Estimate the mean over seeds of their means over splits, from one estimate per replicate; None if one is None."""
    splits = [[estimate for estimate in estimates if estimate] for estimates in seeds]
    if list(map(len, splits)) != list(map(len, seeds)):
        return None
    parts = [estimate for estimates in splits for estimate in estimates]
    weights_N = np.array([1 / (len(seeds) * len(estimates)) for estimates in splits for _ in estimates])
    by_replicate = tuple(tuple(estimate.value for estimate in estimates) for estimates in splits)
    k, estimate = len(seeds), _mean_estimate(parts, weights_N, by_replicate)
    mean_S = estimate.by_seed
    estimate = replace(estimate, value=sum(mean_S) / k, n_problems=parts[0].n_problems, nested=True)
    if k == 1:
        return estimate
    half = student(k - 1) * math.sqrt(float(np.var(mean_S, ddof=1)) / k)
    return _add_seed_interval(estimate, half, k - 1, low, high)


def pooled(parts: Sequence[Estimate], sizes: Sequence[int], low: float = 0.0, high: float = 1.0) -> Estimate:
    """Return the mean over the problems of several sets with the same models, such as the levels of a test file.

    Sets and their sizes are fixed, and their problems are independent. Seeds are shared by the sets: the spread over
    seeds is that of a seed's mean over the sets; that of problems is added in squares, unless replicates are nested.
    """
    weights_N = np.array(sizes) / sum(sizes)
    by_replicate = tuple(
        tuple(map(float, weights_N @ np.array(splits)))
        for splits in zip(*(part.by_replicate for part in parts), strict=True)
    )
    k, estimate = len(by_replicate), replace(_mean_estimate(parts, weights_N, by_replicate), nested=parts[0].nested)
    if k == 1:
        return estimate
    seed_half = student(k - 1) * float(np.std([np.mean(splits) for splits in by_replicate], ddof=1)) / math.sqrt(k)
    problem_half = 0.0 if estimate.nested else (estimate.high - estimate.low) / 2
    squares = max(seed_half**4 / (k - 1) + problem_half**4 / max(estimate.n_problems - 1, 1), TIE**4)
    df = (seed_half**2 + problem_half**2) ** 2 / squares  # Satterthwaite's
    return _add_seed_interval(estimate, math.hypot(seed_half, problem_half), df, low, high)


def _mean_estimate(
    parts: Sequence[Estimate], weights_N: Floats, by_replicate: tuple[tuple[float, ...], ...]
) -> Estimate:
    """Return the weighted mean of independent estimates, with its interval over their problems."""
    bands = Band(*np.array([(part.value, *part.over_problems) for part in parts]).T)
    value, *ends = map(float, mean_of_independent(bands, weights_N))
    n_problems, df = sum(part.n_problems for part in parts), float(np.min([part.df for part in parts]))  # a lower bound
    return Estimate(value, n_problems, Interval(*ends), None, df, by_replicate)


def _add_seed_interval(estimate: Estimate, half: float, df: float, low: float, high: float) -> Estimate:
    """Add the interval over seeds of this half-width (Wilson's form for a share); it includes the one over problems."""
    value, problems = estimate.value, estimate.over_problems
    if half <= TIE:  # seeds equal up to rounding
        return replace(estimate, over_seeds=problems)
    least, most = max(low, value - half), min(high, value + half)
    if low >= 0 and 0 < value < 1:
        least, most = map(float, wilson(value, value * (1 - value) * (Z / half) ** 2))
    both = Interval(min(least, problems.low), max(most, problems.high))
    return replace(estimate, over_seeds=both, df=df)


def mean_of_independent(parts: Band, weights_N: Floats) -> Band:
    """Return the weighted mean of independent means, (N,) or (N, K), with interval half-widths added in squares (MOVER:
    Zou & Donner 2008, Statistics in Medicine 27)."""
    value = weights_N @ parts.value
    below, above = (np.sqrt(weights_N**2 @ (end - parts.value) ** 2) for end in (parts.low, parts.high))
    return Band(value, value - below, value + above)


def band(
    values_PK: Values, weights_P: Values, clusters_P: Counts | None = None, low: float = 0.0, high: float = 1.0
) -> Band:
    """Return Σ values / Σ weights over the problems, column by column; a ``low`` below 0 makes them differences.

    A share has Wilson's interval, on the number of independent samples with the same spread as the clusters.
    """
    values_GK, weights_G = _sums(values_PK, clusters_P), _sums(weights_P, clusters_P)
    total = float(weights_G.sum())
    value_K = np.clip(values_GK.sum(axis=0) / total, low, high)
    residual_GK = values_GK - value_K * weights_G[:, None]
    if low < 0:
        return _difference_band(value_K, values_GK, weights_G, residual_GK, low, high)
    n = int(np.count_nonzero(weights_G))
    n_alike = total**2 / float(weights_G @ weights_G)  # effective number of clusters
    squares_K = (residual_GK**2).sum(axis=0)
    variance_K = squares_K / total**2
    if len(weights_G) < len(weights_P) and n > 1:
        variance_K = variance_K * n / (n - 1) * (student(n - 1) / Z) ** 2
    n_K = np.clip(value_K * (1 - value_K) / np.maximum(variance_K, TIE**2), min(1.0, total), total)
    few_K = np.where(squares_K > TIE, few_events(residual_GK), 0)  # equal shares of several samples are not few events
    n_K = n_K - few_K * np.maximum(n_K - n_alike, 0)
    n_K = np.where((value_K > 0) & (value_K < 1) & (len(weights_G) > 1), n_K, n_alike)
    return Band(value_K, *wilson(value_K, n_K))


def _difference_band(
    value_K: Floats, values_GK: Floats, weights_G: Floats, residual_GK: Floats, low: float, high: float
) -> Band:
    """Return Student's interval over clusters, widened to Tango's if few of them differ."""
    n, total = len(weights_G), float(weights_G.sum())
    if n < 2:
        return Band(value_K, np.full_like(value_K, low), np.full_like(value_K, high))
    half_K = student(n - 1) * np.sqrt((residual_GK**2).sum(axis=0) * n / (n - 1)) / total
    low_K, high_K = value_K - half_K, value_K + half_K
    few_K, largest = few_events(residual_GK), max(-low, high)
    if few_K.any():
        won_K, lost_K = (np.maximum(sign * values_GK, 0).sum(axis=0) / (largest * total) for sign in (1, -1))
        n_alike = total**2 / float(weights_G @ weights_G)
        rare_low_K, rare_high_K = (largest * end for end in tango(won_K, lost_K, n_alike))
        low_K = low_K - few_K * np.maximum(low_K - rare_low_K, 0)
        high_K = high_K + few_K * np.maximum(rare_high_K - high_K, 0)
    return Band(value_K, np.maximum(low_K, low), np.minimum(high_K, high))


def student(df: float, n: int = 1) -> float:
    """Return the quantile of Student's t for a 95 % interval, or for ``n`` simultaneous ones (Bonferroni)."""
    return float(stdtrit(df, 1 - (1 - CONFIDENCE) / 2 / n))


def wilson(share: Floats | float, n: Floats | float) -> tuple[Floats, Floats]:
    """Return Wilson's score interval of a share in ``n`` independent samples (``n`` may be fractional)."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(share * n, n, alpha=1 - CONFIDENCE, method="wilson")
    return np.clip(np.minimum(low, share), 0, 1), np.clip(np.maximum(high, share), 0, 1)


def tango(won: Floats, lost: Floats, n: float) -> tuple[Floats, Floats]:
    """Return Tango's score interval (Statistics in Medicine 17, 1998) of ``won`` − ``lost`` over ``n`` problems."""
    low, high = (  # the lower end as the upper one of the mirror image
        np.array([_upper_end(*shares, n) for shares in zip(more.tolist(), less.tolist(), strict=True)])
        for more, less in ((lost, won), (won, lost))
    )
    return np.minimum(-low, won - lost), np.maximum(high, won - lost)


def _upper_end(more: float, less: float, n: float) -> float:
    """Return the upper end of Tango's interval of ``more`` − ``less``.

    With plain floats: of a single share they are ten times as fast as arrays.
    """
    inside, outside = more - less, 1.0
    for _ in range(40):  # bisection between the value and 1: the score test refuses values above the end
        middle = (inside + outside) / 2
        b = -more - less + (2 - more + less) * middle
        share_less = (math.sqrt(max(b * b + 8 * less * middle * (1 - middle), 0)) - b) / 4
        variance = max(2 * share_less + middle * (1 - middle), TIE) / n
        if middle - more + less > Z * math.sqrt(variance):
            outside = middle
        else:
            inside = middle
    return outside


def few_events(residual_GK: Floats) -> Floats:
    """Return (K,) from 0 (enough clusters carry the spread, by participation ratio) to 1 (too few to estimate it)."""
    squares_GK = residual_GK**2
    total_K, fourth_K = squares_GK.sum(axis=0), (squares_GK**2).sum(axis=0)
    carriers_K = np.divide(total_K**2, fourth_K, out=np.zeros_like(total_K), where=total_K > TIE)
    n = len(residual_GK)
    single = n * (n - 1) / (n * n - 3 * n + 3)  # the ratio if one cluster differs from all others
    enough = max(min(8.0, n / 2), single + 0.5)  # number of clusters that must carry the spread
    weight_K: Floats = np.clip((enough - carriers_K) / (enough - single), 0, 1)
    return weight_K


def _sums(values_P: Values, clusters_P: Counts | None) -> Floats:
    """Add up the problems of every cluster, (P, …) → (G, …)."""
    if clusters_P is None:
        return values_P.astype(float)
    names, place_P = np.unique(clusters_P, return_inverse=True)
    sums = np.zeros((len(names), *values_P.shape[1:]))
    np.add.at(sums, place_P, values_P)
    return sums
