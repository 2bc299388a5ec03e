"""p-values that agree with the intervals, Holm's procedure, sample sizes, and rank correlations of arms.

Legend: S seeds, A arms, R orders of the arms.
"""
# ruff: noqa: N803

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from compositionality.stats.estimate import CONFIDENCE, Estimate, Floats, Interval, student

SMALLEST = 1e-12  # p-value
POWER = 0.8
ORDERS = 5040  # permutations of the arms: all for up to seven arms, else this many at random
TOO_CLOSE = "more than can be estimated: within one standard error of the threshold"


def p_value(estimate: Estimate, threshold: float) -> float:
    """Return the two-sided p of a threshold: below 0.05 if it is outside the 95 % interval; 1 if ``df`` is unknown.

    Student's t, with the standard error derived from the distance between value and interval end.
    """
    distance = abs(estimate.value - threshold)
    end = estimate.high if threshold > estimate.value else estimate.low
    if not estimate.df > 0 or distance == 0 or end == estimate.value:
        return 1.0
    errors = distance / abs(end - estimate.value) * student(estimate.df)
    return max(2 * float(stdtr(estimate.df, -errors)), SMALLEST)


def corrected(estimate: Estimate, n: int) -> tuple[Interval, Interval]:
    """Return both intervals, first over seeds, widened to a confidence of 1 − 0.05 / ``n`` (Bonferroni).

    An unknown ``df`` is replaced by that of the seeds, or of the problems for one seed.
    """
    problems, seeds = max(estimate.n_problems - 1, 1), len(estimate.by_replicate) - 1
    df = estimate.df if estimate.df > 0 else seeds if seeds > 0 else problems

    def widen(interval: Interval, df: float) -> Interval:
        low, high = (estimate.value + student(df, n) / student(df) * (end - estimate.value) for end in interval)
        return Interval(low, high)

    return widen(estimate.interval, df), widen(estimate.over_problems, problems)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for their number (Holm 1979, Scandinavian J. of Statistics 6)."""
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, method="holm")[1]] if p_values else []


Needed = tuple[int, str]  # total number of seeds, or of problems of a level; 0: too close to the threshold


def needed(estimate: Estimate, threshold: float) -> Needed | None:
    """Return the sample size at which a t test against the threshold has 80 % power, with the observed spread.

    The number of seeds; the number of problems if there is one seed, or if seeds share the problems and the interval
    over problems contains the threshold. None if ``df`` is unknown.
    """
    from statsmodels.stats.power import TTestPower

    if not estimate.df > 0:
        return None
    (low, high), df, n, noun = estimate.interval, estimate.df, len(estimate.by_replicate), "seeds"
    problems = estimate.over_problems
    if n == 1 or (not estimate.nested and problems.low <= threshold <= problems.high):
        (low, high), df, n, noun = problems, max(estimate.n_problems - 1, 1), estimate.n_problems, "problems"
    error, distance = (high - low) / (2 * student(df)), abs(estimate.value - threshold)
    if distance <= error:
        return 0, noun
    effect = min(distance / (error * math.sqrt(n)), 4.0)  # needs three; solve_power fails for larger effects
    number = float(TTestPower().solve_power(effect_size=effect, alpha=1 - CONFIDENCE, power=POWER))
    return max(math.ceil(number), n + 1), noun


def needed_words(needs: Sequence[Needed]) -> str:
    """Return ``about 6 seeds for 80 % power``: the largest number of each noun."""
    if not all(number for number, _ in needs):
        return TOO_CLOSE
    numbers = {noun: float(f"{number:.2g}") for number, noun in sorted(needs)}  # the spread is an estimate
    return f"{' and '.join(f'about {n:,.0f} {noun}' for noun, n in numbers.items())} for {100 * POWER:.0f} % power"


class RankCorrelation(NamedTuple):
    """Spearman's correlation, mean over seeds; ``interval``: Student's over seeds of these arms, None for one seed.

    ``p``: share of permutations of the arms (the same in each seed) with at least this correlation, in any direction.
    """

    value: float
    by_seed: tuple[float, ...]
    interval: Interval | None
    p: float


def rank_correlation(one_SA: Floats, other_SA: Floats) -> RankCorrelation:
    """Correlate the ranks of at least three arms; a seed in which all arms have the same figure counts as 0."""
    from scipy.stats import permutation_test, rankdata

    ranks = [rankdata(values_SA, axis=1) - (one_SA.shape[1] + 1) / 2 for values_SA in (one_SA, other_SA)]
    one, other = (ranks_SA / np.maximum(ranks_SA.std(axis=1, keepdims=True), SMALLEST) for ranks_SA in ranks)
    by_seed = (one * other).mean(axis=1)
    value, k = float(by_seed.mean()), len(by_seed)

    def strength(order_RA: Floats, axis: int) -> Floats:  # noqa: ARG001
        means: Floats = np.einsum("s...a,sa->...", one[:, order_RA.astype(int)], other) / one.size
        return np.abs(means)

    options = {"permutation_type": "pairings", "alternative": "greater", "n_resamples": ORDERS, "rng": 20}
    p = float(permutation_test((np.arange(one.shape[1]),), strength, vectorized=True, **options).pvalue)
    half = student(k - 1) * float(by_seed.std(ddof=1)) / math.sqrt(k) if k > 1 else 0.0
    interval = Interval(max(-1.0, value - half), min(1.0, value + half)) if k > 1 else None
    return RankCorrelation(value, tuple(map(float, by_seed)), interval, p)
