"""Where two pass@k curves cross: the first k at which the other checkpoint is ahead."""
# ruff: noqa: N803, N806

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compositionality.stats.bootstrap import TAIL, TIE

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Crossover:
    """The first k at which the difference has changed its sign; an end that is None lies beyond the largest k."""

    k: int
    low: int | None
    high: int | None


def crossover(difference_K: Floats, drawn_KR: Floats) -> Crossover | None:
    """None if the sign never changes; the interval holds 95 % of the draws' crossovers (percentiles).

    A draw in which the other one is ahead from the start crosses at k = 1; one that never crosses does so beyond K.
    """
    signs_K = np.sign(np.where(np.abs(difference_K) > TIE, difference_K, 0.0))
    first = int(np.argmax(signs_K != 0))
    changed_K = signs_K == -signs_K[first]
    if signs_K[first] == 0 or not changed_K.any():
        return None
    turned_KR = drawn_KR * signs_K[first] < -TIE
    at_R = np.where(turned_KR.any(axis=0), turned_KR.argmax(axis=0) + 1, len(difference_K) + 1)
    low, high = np.quantile(at_R, [TAIL, 1 - TAIL], method="inverted_cdf")
    return Crossover(int(np.argmax(changed_K)) + 1, _within(low, difference_K), _within(high, difference_K))


def _within(k: float, difference_K: Floats) -> int | None:
    return int(k) if k <= len(difference_K) else None
