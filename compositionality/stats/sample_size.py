"""What an undecided comparison would need: how many seeds or problems, if the spread stays as it was seen."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compositionality.stats.random_effects import Spread

ON_THRESHOLD = 0.0005
"""A figure that is 0.05 points from its threshold lies on it."""
MOST = 1e7
ENOUGH_SEEDS = 10_000
NEVER = "no number would do: the difference lies on the threshold"


@dataclass(frozen=True)
class Need:
    """So many seeds and so many problems in all; 0: there are enough. Infinite: no number would do."""

    seeds: float = 0
    problems: float = 0

    @property
    def words(self) -> str:
        """``about 12 seeds``, ``about 900 problems``, or both; a level's problems are counted."""
        if math.inf in (self.seeds, self.problems):
            return NEVER
        parts = [
            f"about {_rounded(n):,} {what}" for n, what in ((self.seeds, "seeds"), (self.problems, "problems")) if n
        ]
        return " and ".join(parts)


def most(needs: Sequence[Need]) -> Need:
    """What is enough for all of them."""
    return Need(max(need.seeds for need in needs), max(need.problems for need in needs))


def needed(spreads: Sequence[Spread], distance: float) -> Need:
    """The seeds and problems at which the half-widths of the intervals (added) are as small as ``distance``.

    More seeds where they alone would do; else more problems too, half of the variance for either.
    """
    if distance < ON_THRESHOLD:
        return Need(math.inf, math.inf)
    k, n = spreads[0].k, spreads[0].n

    def narrow(problems: float) -> float:
        return sum(spread.narrow(problems) for spread in spreads)

    def wide(seeds: float, problems: float) -> float:
        return sum(spread.wide(seeds, problems) for spread in spreads) if k > 1 else 0.0

    problems = _fewest(narrow, distance, n)
    if wide(ENOUGH_SEEDS, problems) > distance:
        problems = _fewest(lambda m: wide(ENOUGH_SEEDS, m), distance / math.sqrt(2), problems)
    if math.isinf(problems):
        return Need(problems=problems)
    seeds = _fewest(lambda m: wide(m, problems), distance, k) if k > 1 else k
    found = Need(seeds if seeds > k else 0, problems if problems > n else 0)
    return found if found.words else Need(problems=n + 1)  # on the edge: the interval's own form is a little wider


def _fewest(half: Callable[[float], float], distance: float, start: float) -> float:
    """The smallest number from ``start`` on at which ``half``, which falls, is at most ``distance``."""
    from scipy.optimize import brentq

    if half(start) <= distance:
        return start
    if half(MOST) > distance:
        return math.inf
    return math.ceil(math.exp(brentq(lambda x: half(math.exp(x)) - distance, math.log(start), math.log(MOST))))


def _rounded(n: float) -> int:
    """Up to two digits: the spread is an estimate."""
    step: int = 10 ** max(len(str(int(n))) - 2, 0)
    return math.ceil(n / step) * step
