"""Intervals over seeds that have splits and problems of their own: replicates nested in seeds, none shared.

The mean of a seed over its splits is one independent value, whatever varies within it.

"problems": these seeds and splits. The interval of each replicate over its own problems (``stats.intervals``); their
distances from the value are added in squares, each with its weight (MOVER: Zou & Donner 2008, Statistics in Medicine
27). "seeds, splits and problems": Student's t over the means of the k seeds, k - 1 degrees of freedom; a share gets
Wilson's form of the same width. Never narrower than "problems".

Legend: P problems of one replicate. Outer sequences: seeds; inner ones: the splits of a seed.
"""
# ruff: noqa: N806

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from compositionality.stats.intervals import Counts, Values, mean_change, share, student, wilson
from compositionality.stats.random_effects import at_least
from compositionality.types import Estimate, Interval, Spread


class Answers(NamedTuple):
    """What one replicate counted, out of how many, and the cluster of each problem; each (P,)."""

    counted: Values
    judged: Counts
    clusters: Counts | None = None


def mean_of_both(seeds: Sequence[Sequence[Answers]], others: Sequence[Sequence[Answers]]) -> list[list[Answers]]:
    """The mean of two shares, problem by problem, each out of one; of problems that both have judged."""
    return [[_mean(one, other) for one, other in zip(*both, strict=True)] for both in zip(seeds, others, strict=True)]


def _mean(one: Answers, other: Answers) -> Answers:
    both_P = (one.judged > 0) & (other.judged > 0)
    values_P = one.counted / np.maximum(one.judged, 1) + other.counted / np.maximum(other.judged, 1)
    return Answers(values_P / 2 * both_P, both_P.astype(np.int64), one.clusters)


def share_nested(seeds: Sequence[Sequence[Answers]]) -> Estimate | None:
    """Mean over seeds of their mean share over splits; None if a replicate has none judged."""
    found = [[share(*one) for one in splits] for splits in seeds]
    return _estimate(found, 0.0, is_share=True)


def contrast_nested(
    seeds: Sequence[Sequence[Answers]], base: Sequence[Sequence[Answers]], times: float = 1.0
) -> Estimate | None:
    """Mean of (share − ``times`` × the base's share), paired by replicate and problem; None if one has under 2."""
    pairs = [list(zip(mine, theirs, strict=True)) for mine, theirs in zip(seeds, base, strict=True)]
    found = [[_change(mine, theirs, times) for mine, theirs in splits] for splits in pairs]
    return _estimate(found, -times, is_share=False)


def _change(mine: Answers, base: Answers, times: float) -> Estimate | None:
    both_P = (mine.judged > 0) & (base.judged > 0)
    if np.count_nonzero(both_P) < 2:
        return None
    change_P = mine.counted[both_P] / mine.judged[both_P] - times * (base.counted[both_P] / base.judged[both_P])
    return mean_change(change_P, -times, clusters=None if mine.clusters is None else mine.clusters[both_P])


def _estimate(found: Sequence[Sequence[Estimate | None]], least: float, *, is_share: bool) -> Estimate | None:
    known = [[one for one in splits if one] for splits in found]
    if [len(splits) for splits in known] != [len(splits) for splits in found]:
        return None
    by_split = tuple(tuple(one.value for one in splits) for splits in known)
    by_seed = tuple(sum(values) / len(values) for values in by_split)
    value, k, n = sum(by_seed) / len(by_seed), len(by_seed), known[0][0].n_problems
    over_problems = _within(known, value)
    variance = float(np.var(by_seed, ddof=1)) if k > 1 else 0.0
    pooled = n * ((over_problems.high - over_problems.low) / (2 * student(max(n, 2)))) ** 2
    over_both = None
    if k > 1:
        half = student(k) * math.sqrt(variance / k)
        over_both = at_least(_around(value, half, least, is_share=is_share), over_problems)
    return Estimate(value, n, over_problems, over_both, by_seed, Spread(k, n, variance, 0.0, pooled), by_split)


def _within(seeds: Sequence[Sequence[Estimate]], value: float) -> Interval:
    """Of the weighted mean of independent values, from the interval of each."""
    weighted = [(one, 1 / (len(seeds) * len(splits))) for splits in seeds for one in splits]
    below = math.sqrt(sum((weight * (one.value - one.low)) ** 2 for one, weight in weighted))
    above = math.sqrt(sum((weight * (one.high - one.value)) ** 2 for one, weight in weighted))
    return Interval(value - below, value + above)


def _around(value: float, half: float, least: float, *, is_share: bool) -> Interval:
    if is_share and half > 0 and 0 < value < 1:
        return wilson(value, value * (1 - value) / half**2, quantile=1.0)
    return Interval(max(least, value - half), min(1.0, value + half))
