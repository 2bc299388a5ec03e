"""Do two figures rank the same arms alike? Spearman's rank correlation, seed by seed.

Names of arrays: S seeds, A arms.
"""

# ruff: noqa: N803

from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np
from scipy.stats import rankdata

from compositionality.stats.intervals import Floats, student
from compositionality.types import Interval

MOST_ORDERS = 5040
"""Of the arms that are all tried; of more, so many at random."""
_START = 20


@dataclass(frozen=True)
class RankCorrelation:
    """The mean over seeds; ``over_seeds``: Student's interval for other seeds of these arms, None for one seed.

    ``p``: how many of all orders of the arms, the same in each seed, correlate as much or more in either direction.
    """

    value: float
    by_seed: tuple[float, ...]
    over_seeds: Interval | None
    p: float


def rank_correlation(one_SA: Floats, other_SA: Floats) -> RankCorrelation:
    """Of at least three arms; a seed in which a figure is the same for all of them counts as 0."""
    one, other = _standard_ranks(one_SA), _standard_ranks(other_SA)
    by_seed = (one * other).sum(axis=1)
    value = float(by_seed.mean())
    orders = np.array(_orders(one.shape[1]))
    found = np.einsum("soa,sa->o", one[:, orders], other) / len(one)
    p = float((np.abs(found) >= abs(value) - 1e-12).mean())
    return RankCorrelation(value, tuple(map(float, by_seed)), _over_seeds(by_seed), p)


def _standard_ranks(values_SA: Floats) -> Floats:
    """Ranks with mean 0 and length 1; 0 where all are equal."""
    ranks = rankdata(values_SA, axis=1)
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    standard: Floats = np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 0)
    return standard


def _orders(n: int) -> list[tuple[int, ...]]:
    """All of them, or many, the given one first."""
    if factorial(n) <= MOST_ORDERS:
        return list(permutations(range(n)))
    rng = np.random.default_rng(_START)
    return [tuple(range(n)), *(tuple(rng.permutation(n)) for _ in range(MOST_ORDERS - 1))]


def _over_seeds(by_seed: Floats) -> Interval | None:
    n = len(by_seed)
    if n < 2:
        return None
    half = student(n) * float(by_seed.std(ddof=1)) / n**0.5
    mean = float(by_seed.mean())
    return Interval(max(-1.0, mean - half), min(1.0, mean + half))
