"""What an undecided comparison would need: how many seeds or problems, if the spread stays as it was seen."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compositionality.stats.random_effects import half_width_over_both, half_width_over_problems
from compositionality.types import Spread

ON_THRESHOLD = 0.0005
"""A figure that is 0.05 points from its threshold lies on it."""
MOST = 1e7
ENOUGH_SEEDS = 10_000
NEVER = "no number would do: the difference lies on the threshold"


@dataclass(frozen=True)
class RequiredSampleSize:
    """The total number of seeds and of problems; 0: there are enough already. Infinite: no number would do."""

    seeds: float = 0
    problems: float = 0

    @property
    def words(self) -> str:
        """``about 12 seeds``, ``about 900 problems``, or both; problems are those of one level."""
        if math.inf in (self.seeds, self.problems):
            return NEVER
        parts = [
            f"about {_rounded(n):,} {what}" for n, what in ((self.seeds, "seeds"), (self.problems, "problems")) if n
        ]
        return " and ".join(parts)


def enough_for_all(sizes: Sequence[RequiredSampleSize]) -> RequiredSampleSize:
    """The larger number of each."""
    return RequiredSampleSize(max(size.seeds for size in sizes), max(size.problems for size in sizes))


def required_sample_size(spreads: Sequence[Spread], distance: float) -> RequiredSampleSize:
    """The seeds and problems at which the half-widths of the intervals (added) are as small as ``distance``.

    More seeds where they alone would do; else more problems too, half of the variance for either.
    """
    if distance < ON_THRESHOLD:
        return RequiredSampleSize(math.inf, math.inf)
    k, n = spreads[0].k, spreads[0].n

    def over_problems(problems: float) -> float:
        return sum(half_width_over_problems(spread, problems) for spread in spreads)

    def over_both(seeds: float, problems: float) -> float:
        return sum(half_width_over_both(spread, seeds, problems) for spread in spreads) if k > 1 else 0.0

    problems = _fewest(over_problems, distance, n)
    if over_both(ENOUGH_SEEDS, problems) > distance:
        problems = _fewest(lambda m: over_both(ENOUGH_SEEDS, m), distance / math.sqrt(2), problems)
    if math.isinf(problems):
        return RequiredSampleSize(problems=problems)
    seeds = _fewest(lambda m: over_both(m, problems), distance, k) if k > 1 else k
    found = RequiredSampleSize(seeds if seeds > k else 0, problems if problems > n else 0)
    return found if found.words else RequiredSampleSize(problems=n + 1)  # Wilson's form is a little wider


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
