"""Shares and their intervals. One formula for one sample per problem and for many: Wilson's, on the number of
independent samples that the problems amount to.

With one sample per problem that number is the number of problems, and the interval is Wilson's. With several, the
samples of one problem resemble each other: the number shrinks by the design effect that the spread between problems
shows (clusters are problems). Where nothing varies (all right, all wrong) each problem counts once.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Values = NDArray[np.int64] | NDArray[np.float64]
"""Counts, or shares of one: what stands over a denominator."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A share or a difference of shares with its 95 % interval."""

    value: float
    low: float
    high: float


def wilson(
    share: float, n: float, confidence: float = CONFIDENCE, quantile: float | None = None
) -> tuple[float, float]:
    """Wilson's score interval for a share seen in ``n`` independent samples (``n`` may be fractional).

    ``quantile`` stands in for the normal one, where the spread itself is an estimate (Student's).
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2) if quantile is None else quantile
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def share(correct: Values, judged: Values) -> Interval | None:
    """Share of correct among judged responses over P problems, with its interval; None if nothing was judged."""
    total = int(judged.sum())
    if total == 0:
        return None
    value = float(correct.sum()) / total
    return Interval(value, *wilson(value, effective_samples(correct, judged)))


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


def paired_difference(correct: Counts, judged: Counts, base: Counts, base_judged: Counts) -> Interval | None:
    """Mean over the problems that both judged of (share correct - the base's share), with a Student interval."""
    both = (judged > 0) & (base_judged > 0)
    if np.count_nonzero(both) < 2:
        return None
    return mean_change(correct[both] / judged[both] - base[both] / base_judged[both])


def mean_change(change: NDArray[np.float64], least: float = -1.0, most: float = 1.0) -> Interval:
    """Mean of at least 2 independent values between ``least`` and ``most``, with a Student interval."""
    from scipy.stats import t

    n, value = len(change), float(change.mean())
    half = float(t.ppf(0.5 + CONFIDENCE / 2, n - 1) * change.std(ddof=1) / math.sqrt(n))
    half = half or unseen(n)
    return Interval(value, max(least, value - half), min(most, value + half))


def unseen(n: float) -> float:
    """Half-width where n problems show no difference: they leave room for a share of differing ones, never for none."""
    return float(1 - (0.5 - CONFIDENCE / 2) ** (1 / n))
