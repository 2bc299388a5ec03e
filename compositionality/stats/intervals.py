"""Shares and means with their intervals. One formula for one sample per problem and for many: Wilson's, on the number
of independent samples that the problems amount to.

With one sample per problem that number is the number of problems, and the interval is Wilson's. With several, the
samples of one problem resemble each other: the number shrinks by the design effect that the spread between problems
shows. So do problems of one cluster (problems that share what makes them hard, as their composition): then the variance
is that between clusters, with Student's t for their number less one (cluster-robust: Cameron & Miller 2015, J. Human
Resources 50). Where nothing varies (all right, all wrong), or next to nothing (``stats.rare``), a cluster counts once.

Legend: P problems, G clusters; ``clusters``: a number for the cluster of every problem, (P,) (None: each its own).
"""
# ruff: noqa: N803, N806

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compositionality.stats.rare import doubt, paired_score
from compositionality.types import Estimate, Interval

Counts = NDArray[np.int64]
Values = NDArray[np.int64] | NDArray[np.float64]
"""Counts, or shares of one: what stands over a denominator."""
Floats = NDArray[np.float64]
CONFIDENCE = 0.95


def wilson(share: float, n: float, quantile: float | None = None) -> Interval:
    """Wilson's score interval of a share seen in ``n`` independent samples (``n`` may be fractional).

    ``quantile`` takes the place of the normal one where the spread itself is an estimate (Student's); statsmodels
    knows only the normal one.
    """
    if quantile is None:
        from statsmodels.stats.proportion import proportion_confint

        low, high = map(float, proportion_confint(share * n, n, alpha=1 - CONFIDENCE, method="wilson"))
    else:
        centre = (share + quantile**2 / (2 * n)) / (1 + quantile**2 / n)
        half = math.sqrt(share * (1 - share) / n + quantile**2 / (4 * n * n)) * quantile / (1 + quantile**2 / n)
        low, high = centre - half, centre + half
    return Interval(max(0.0, min(share, low)), min(1.0, max(share, high)))


def share(correct: Values, judged: Values, clusters: Counts | None = None) -> Estimate | None:
    """Share of correct among judged responses to P problems; None if nothing was judged."""
    total = int(judged.sum())
    if total == 0:
        return None
    value = float(correct.sum()) / total
    samples = effective_samples(correct, judged, clusters)
    return Estimate(value, int(np.count_nonzero(judged)), wilson(value, samples))


def effective_samples(correct: Values, judged: Values, clusters: Counts | None = None) -> float:
    """How many independent samples would spread as much as these clusters do: from 1 to all judged responses."""
    total = int(judged.sum())
    value = float(correct.sum()) / total
    judged_G, residual_G = sums(judged, clusters), sums(np.asarray(correct - value * judged, float), clusters)
    once = total**2 / float(judged_G @ judged_G)
    if value in (0.0, 1.0) or len(judged_G) == 1:
        return once
    variance = float(residual_G @ residual_G) / total**2 * _few(judged_G, clusters)
    if variance == 0:
        return total
    independent = min(max(value * (1 - value) / variance, 1.0), total)
    unsure = float(doubt(residual_G[:, None])[0])
    return independent - unsure * max(independent - once, 0.0)


def _few(judged_G: Floats, clusters: Counts | None) -> float:
    """What the square of the normal quantile grows by where the variance is that between few clusters."""
    n = int(np.count_nonzero(judged_G))
    if clusters is None or len(judged_G) == len(clusters):
        return 1.0
    return n / (n - 1) * (student(n) / student(math.inf)) ** 2 if n > 1 else 1.0


def numbered(clusters_P: Counts) -> Counts:
    """The clusters numbered from 0."""
    place_P: Counts = np.unique(clusters_P, return_inverse=True)[1]
    return place_P


def sums(values_P: Values, clusters: Counts | None) -> Floats:
    """Sums over the problems of every cluster, (G,)."""
    if clusters is None:
        return values_P.astype(float)
    return np.bincount(numbered(clusters), values_P).astype(float)


def by_cluster(values: Floats, clusters: Counts | None) -> Floats:
    """(…, P) → (…, G), with the same mean and with the spread that this mean has over clusters."""
    if clusters is None:
        return values
    mean = values.mean(axis=-1, keepdims=True)
    flat = (values - mean).reshape(-1, values.shape[-1])
    summed = np.stack([sums(row, clusters) for row in flat]).reshape(*values.shape[:-1], -1)
    spread: Floats = mean + summed * (summed.shape[-1] / values.shape[-1])
    return spread


def student(n: float) -> float:
    """Student's quantile for the mean of ``n`` values."""
    from scipy.stats import t

    return float(t.ppf(0.5 + CONFIDENCE / 2, n - 1))


def paired_difference(
    correct: Counts, judged: Counts, base: Counts, base_judged: Counts, clusters: Counts | None = None
) -> Estimate | None:
    """Mean over the problems that both judged of (share correct - the base's share), as ``mean_change`` has it."""
    both = (judged > 0) & (base_judged > 0)
    if np.count_nonzero(both) < 2:
        return None
    change = correct[both] / judged[both] - base[both] / base_judged[both]
    return mean_change(change, clusters=None if clusters is None else clusters[both])


def mean_change(change_P: Floats, least: float = -1.0, most: float = 1.0, clusters: Counts | None = None) -> Estimate:
    """Mean of at least 2 values between ``least`` and ``most``: Student's interval over clusters, or a rare event's."""
    value, change_G = float(change_P.mean()), by_cluster(change_P, clusters)
    n = len(change_G)
    if n < 2:
        return Estimate(value, len(change_P), Interval(least, most))
    half = student(n) * float(change_G.std(ddof=1)) / math.sqrt(n)
    low, high = value - half, value + half
    if unsure := float(doubt(change_G[:, None] - value)[0]):
        rare = rare_change(change_P, max(-least, most), clusters)
        low, high = low - unsure * max(low - rare.low, 0.0), high + unsure * max(rare.high - high, 0.0)
    return Estimate(value, len(change_P), Interval(max(least, low), min(most, high)))


def scaled(estimate: Estimate, factor: float) -> Estimate:
    """The estimate of ``factor`` times the same figure; ``factor`` is above 0."""

    def times(interval: Interval) -> Interval:
        return Interval(factor * interval.low, factor * interval.high)

    spread = estimate.spread
    if spread:
        wider = {name: factor**2 * getattr(spread, name) for name in ("seeds", "problems", "pooled")}
        spread = replace(spread, **wider)
    return replace(
        estimate,
        value=factor * estimate.value,
        over_problems=times(estimate.over_problems),
        over_both=times(estimate.over_both) if estimate.over_both else None,
        by_seed=tuple(factor * value for value in estimate.by_seed),
        by_split=tuple(tuple(factor * value for value in splits) for splits in estimate.by_split),
        spread=spread,
    )


def rare_change(change_P: Floats, largest: float, clusters: Counts | None) -> Interval:
    """The mean's interval if few problems differ, of values up to ±``largest``."""
    size_G = sums(np.ones_like(change_P), clusters)
    share_G = sums(change_P, clusters) / (largest * len(change_P))
    n = len(change_P) ** 2 / float(size_G @ size_G)
    low, high = paired_score(share_G[share_G > 0].sum(), -share_G[share_G < 0].sum(), n)
    return Interval(largest * float(low), largest * float(high))


def columns(estimate: Estimate | None, value: str) -> dict[str, float | None]:
    """``value``, low and high as columns of a table; None where there is no estimate."""
    if estimate is None:
        return dict.fromkeys((value, "low", "high"))
    return {value: estimate.value, "low": estimate.low, "high": estimate.high}


def columns_by_seed(estimate: Estimate | None, value: str) -> dict[str, Any]:
    """The same with both intervals, the value of every seed, and of each of its splits where it has its own."""
    names = (value, "low", "high", "interval", "problems_low", "problems_high", "values", "splits")
    if estimate is None:
        return dict.fromkeys(names)
    low, high = estimate.over_problems
    splits = [list(values) for values in estimate.by_split] or None
    found = (estimate.value, estimate.low, estimate.high, estimate.covers, low, high, list(estimate.by_seed), splits)
    return dict(zip(names, found, strict=True))
