"""p-values that belong to the intervals, and Holm's step-down procedure for a family of claims.

A p-value is the least 1 − confidence at which an estimate's interval would end at the threshold: below 0.05 exactly
where the 95 % interval leaves the threshold out. How an interval grows with its confidence is Student's t for the
seeds (k − 1) and the problems (n − 1), as in ``stats.random_effects``; its ends at 95 % are the estimate's own.
"""

import math
from collections.abc import Sequence

from compositionality.stats.intervals import CONFIDENCE
from compositionality.types import Estimate

SMALLEST = 1e-12
"""The least p-value that is reported."""


def p_value(estimate: Estimate, threshold: float) -> float:
    """Two-sided, of the hypothesis that the true value is the threshold; 1 where the spread is not known."""
    from scipy.optimize import brentq

    distance = abs(estimate.value - threshold)
    end = estimate.high if threshold > estimate.value else estimate.low
    if estimate.spread is None or distance == 0 or end == estimate.value:
        return 1.0
    asked = distance / abs(end - estimate.value) * _half_width(estimate, 1 - CONFIDENCE)

    def too_wide(log_p: float) -> float:
        return _half_width(estimate, math.exp(log_p)) - asked

    return SMALLEST if too_wide(math.log(SMALLEST)) < 0 else math.exp(brentq(too_wide, math.log(SMALLEST), 0.0))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted for their number (Holm 1979, Scandinavian J. of Statistics 6)."""
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, method="holm")[1]] if p_values else []


def _half_width(estimate: Estimate, p: float) -> float:
    """Half the interval with confidence 1 − ``p``, up to a factor."""
    from scipy.stats import norm, t

    spread = estimate.spread
    if spread is None or not (spread.seeds or spread.pooled):
        return float(norm.isf(p / 2))
    of_problems = float(t.isf(p / 2, spread.n - 1)) ** 2 / spread.n
    over_problems = spread.pooled * of_problems
    if estimate.over_both is None:
        return math.sqrt(over_problems)
    of_seeds = float(t.isf(p / 2, spread.k - 1)) ** 2 / spread.k
    return math.sqrt(max(over_problems, spread.seeds * of_seeds + spread.problems * of_problems))
