"""Shares and their intervals. One formula for one sample per problem and for many: Wilson's, on the number of
independent samples that the problems amount to.

With one sample per problem that number is the number of problems, and the interval is Wilson's. With several, the
samples of one problem resemble each other: the number shrinks by the design effect that the spread between problems
shows (clusters are problems). Where nothing varies (all right, all wrong) each problem counts once.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compositionality.types import Estimate, Interval

Counts = NDArray[np.int64]
Values = NDArray[np.int64] | NDArray[np.float64]
"""Counts, or shares of one: what stands over a denominator."""
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


def share(correct: Values, judged: Values) -> Estimate | None:
    """Share of correct among judged responses to P problems; None if nothing was judged."""
    total = int(judged.sum())
    if total == 0:
        return None
    value = float(correct.sum()) / total
    return Estimate(value, int(np.count_nonzero(judged)), wilson(value, effective_samples(correct, judged)))


def effective_samples(correct: Values, judged: Values) -> float:
    """How many independent samples would spread as much as these P clusters do: from 1 to all judged responses."""
    total = int(judged.sum())
    value = float(correct.sum()) / total
    problems = int(np.count_nonzero(judged))
    if value in (0.0, 1.0):
        return problems
    residual = correct - value * judged
    variance = float(residual @ residual) / total**2
    independent = value * (1 - value) / variance if variance > 0 else math.inf
    return min(max(independent, 1.0), total)


def paired_difference(correct: Counts, judged: Counts, base: Counts, base_judged: Counts) -> Estimate | None:
    """Mean over the problems that both judged of (share correct - the base's share), with a Student interval."""
    both = (judged > 0) & (base_judged > 0)
    if np.count_nonzero(both) < 2:
        return None
    return mean_change(correct[both] / judged[both] - base[both] / base_judged[both])


def mean_change(change: NDArray[np.float64], least: float = -1.0, most: float = 1.0) -> Estimate:
    """Mean of at least 2 independent values between ``least`` and ``most``, with a Student interval."""
    from scipy.stats import t

    n, value = len(change), float(change.mean())
    half = float(t.ppf(0.5 + CONFIDENCE / 2, n - 1) * change.std(ddof=1) / math.sqrt(n))
    half = half or unseen(n)
    return Estimate(value, n, Interval(max(least, value - half), min(most, value + half)))


def unseen(n: float) -> float:
    """Half-width where n problems show no difference: they leave room for a share of differing ones, never for none."""
    return float(1 - (0.5 - CONFIDENCE / 2) ** (1 / n))


def columns(estimate: Estimate | None, value: str) -> dict[str, float | None]:
    """``value``, low and high as columns of a table; None where there is no estimate."""
    if estimate is None:
        return dict.fromkeys((value, "low", "high"))
    return {value: estimate.value, "low": estimate.low, "high": estimate.high}


def columns_by_seed(estimate: Estimate | None, value: str) -> dict[str, Any]:
    """The same with both intervals and the value of every seed."""
    names = (value, "low", "high", "interval", "problems_low", "problems_high", "values")
    if estimate is None:
        return dict.fromkeys(names)
    low, high = estimate.over_problems
    found = (estimate.value, estimate.low, estimate.high, estimate.covers, low, high, list(estimate.by_seed))
    return dict(zip(names, found, strict=True))
