"""Intervals where the spread is not to be seen: no problem differs, or so few that the variance says next to nothing.

Tango's score interval of a difference of paired shares (1998, Statistics in Medicine 17), the counterpart of Wilson's
for one share: it is never shorter for one discordant problem than for none. Of problems with several samples the parts
of problems won and lost are summed.
"""
# ruff: noqa: N803, N806

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Z = 1.959963984540054
"""The normal quantile of a 95 % interval."""
ENOUGH_CARRIERS = 8.0
"""So many problems must carry the spread, or half of them where there are few at all."""
TIE = 1e-12
_HALVINGS = 40


def paired_score(won: Any, lost: Any, n: Any) -> tuple[Floats, Floats]:
    """Low and high of (won − lost) of shares ``won`` and ``lost`` of ``n`` problems; all may be arrays of one shape."""
    won, lost = np.asarray(won, float), np.asarray(lost, float)
    value = won - lost

    def ends(won: Floats, lost: Floats) -> Floats:
        """The difference above which the score test refuses: between the value and 1, by bisection."""
        inside, outside = won - lost, np.ones_like(won)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            refused = _score(won, lost, n, middle) > Z
            inside, outside = np.where(refused, inside, middle), np.where(refused, middle, outside)
        return outside

    return np.minimum(-ends(lost, won), value), np.maximum(ends(won, lost), value)


def no_difference(n: float) -> float:
    """Half the interval where none of ``n`` problems differ."""
    return Z**2 / (n + Z**2)


def _score(won: Floats, lost: Floats, n: Any, difference: Floats) -> Floats:
    """How many standard errors ``difference`` lies above the value, the errors taken at ``difference``."""
    b = -won - lost + (2 - won + lost) * difference
    c = -lost * difference * (1 - difference)
    share_lost = (np.sqrt(np.maximum(b * b - 8 * c, 0)) - b) / 4
    variance = np.maximum(2 * share_lost + difference * (1 - difference), TIE) / n
    errors: Floats = (difference - won + lost) / np.sqrt(variance)
    return errors


def doubt(residual_PK: Floats) -> Floats:
    """(K,) from 0 (enough problems carry the spread) to 1 (so few, by participation ratio, that it says nothing)."""
    squares_PK = residual_PK**2
    total_K, fourth_K = squares_PK.sum(axis=0), (squares_PK**2).sum(axis=0)
    carriers_K = np.where(total_K > TIE, total_K**2 / np.maximum(fourth_K, TIE**2), 0.0)
    n = len(residual_PK)
    one = n * (n - 1) / (n * n - 3 * n + 3)  # the ratio of one problem that differs from all others
    enough = max(min(ENOUGH_CARRIERS, n / 2), one + 0.5)
    doubt_K: Floats = np.clip((enough - carriers_K) / (enough - one), 0, 1)
    return doubt_K
