"""What an undecided comparison would need for 80 % power: how many seeds or problems, and how far that may be off.

Power 80 %: if the difference is as large as it was seen, four studies of that size in five decide. The range holds the
sizes for the limits between which the spread lies with 80 % (χ² of the variance of the seeds, or of the problems where
these are what is short; Browne 1995, Statistics in Medicine 14). An estimate within one standard error of its threshold
may lie on either side of it: no number is named then.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compositionality.stats.random_effects import half_width_over_both, half_width_over_problems
from compositionality.types import Spread

POWER = 0.8
RANGE = 0.8
"""How surely the range holds the size, as far as the spread is what is not known."""
MOST = 1e7
ENOUGH_SEEDS = 10_000
TOO_CLOSE = "a number that cannot be told: it is too close to its threshold to say"


@dataclass(frozen=True)
class Needed:
    """A total number with its range; 0: there are enough already."""

    number: float = 0
    low: float = 0
    high: float = 0

    def words(self, noun: str) -> str:
        """``about 6 (4 to 14) seeds``."""
        least = f"{_rounded(self.low):,}"
        span = "" if self.low == self.high else f" ({least}{_most(self.high)})"
        return f"about {_rounded(self.number):,}{span} {noun}"


@dataclass(frozen=True)
class RequiredSampleSize:
    """Seeds and problems in all, problems of one level (clusters of them, where they share one)."""

    seeds: Needed = Needed()
    problems: Needed = Needed()
    too_close: bool = False
    clustered: bool = False

    @property
    def words(self) -> str:
        """``about 6 (4 to 14) seeds for 80 % power``, or problems, or both."""
        if self.too_close:
            return TOO_CLOSE
        noun = "clusters of problems" if self.clustered else "problems"
        parts = [need.words(of) for need, of in ((self.seeds, "seeds"), (self.problems, noun)) if need.number]
        return f"{' and '.join(parts)} for {100 * POWER:.0f} % power"


def enough_for_all(sizes: Sequence[RequiredSampleSize]) -> RequiredSampleSize:
    """The larger number of each."""
    return RequiredSampleSize(
        max((size.seeds for size in sizes), key=lambda need: need.number),
        max((size.problems for size in sizes), key=lambda need: need.number),
        any(size.too_close for size in sizes),
        any(size.clustered for size in sizes),
    )


def required_sample_size(spreads: Sequence[Spread], distance: float) -> RequiredSampleSize:
    """The seeds and problems at which intervals with these spreads exclude a threshold at ``distance`` with 80 % power.

    Of several spreads the half-widths are added. More seeds where they alone would do; else more problems too.
    """
    k, n = spreads[0].k, spreads[0].n
    if distance <= _error(spreads, k, n):
        return RequiredSampleSize(too_close=True)
    seeds, problems = _sizes(spreads, distance)
    fewer, more = (_sizes([_scaled(one, limit) for one in spreads], distance) for limit in _limits(k if k > 1 else n))
    found = RequiredSampleSize(
        Needed(seeds, min(fewer[0], seeds), more[0]) if seeds > k else Needed(),
        Needed(problems, min(fewer[1], problems), more[1]) if problems > n else Needed(),
        clustered=spreads[0].clustered,
    )
    wider = Needed(n + 1, n + 1, n + 1)  # Wilson's form is a little wider than what is solved here
    return found if found.seeds.number or found.problems.number else replace(found, problems=wider)


def _sizes(spreads: Sequence[Spread], distance: float) -> tuple[float, float]:
    """Seeds and problems, from those that there are on."""
    k, n = spreads[0].k, spreads[0].n
    if k == 1:
        return 1, _fewest(lambda m: _reach(spreads, 1, m), distance, n)
    problems: float = n
    if _reach(spreads, ENOUGH_SEEDS, n) > distance or _over_problems(spreads, n) > distance:
        half = distance / math.sqrt(2)
        problems = _fewest(lambda m: max(_reach(spreads, ENOUGH_SEEDS, m), _over_problems(spreads, m)), half, n)
    if math.isinf(problems):
        return ENOUGH_SEEDS, problems
    return _fewest(lambda m: _reach(spreads, m, problems), distance, 2), problems


def _reach(spreads: Sequence[Spread], k: float, n: float) -> float:
    """The distance that a study of this size tells from 0 with 80 % power: half-widths, and how far estimates fall."""
    if k == 1:
        return _over_problems(spreads, n) + _fall(n) * _error(spreads, k, n)
    return sum(half_width_over_both(one, k, n) for one in spreads) + _fall(k) * _error(spreads, k, n)


def _over_problems(spreads: Sequence[Spread], n: float) -> float:
    return sum(half_width_over_problems(one, n) for one in spreads)


def _error(spreads: Sequence[Spread], k: float, n: float) -> float:
    """Standard error of the estimate."""
    if spreads[0].k == 1:
        return math.sqrt(sum(one.pooled for one in spreads) / n)
    return math.sqrt(sum(one.seeds / k + one.problems / n for one in spreads))


def _fall(n: float) -> float:
    """How many standard errors short of the truth one estimate in five falls."""
    from scipy.stats import t

    return float(t.ppf(POWER, n - 1))


def _limits(n: int) -> tuple[float, float]:
    """Factors between which the variance of ``n`` values lies."""
    from scipy.stats import chi2

    return float((n - 1) / chi2.ppf(0.5 + RANGE / 2, n - 1)), float((n - 1) / chi2.ppf(0.5 - RANGE / 2, n - 1))


def _scaled(spread: Spread, by: float) -> Spread:
    """The seeds vary so much more, or the problems where there is one seed."""
    return replace(spread, seeds=spread.seeds * by) if spread.k > 1 else replace(spread, pooled=spread.pooled * by)


def _fewest(reach: Callable[[float], float], distance: float, start: float) -> float:
    """The smallest whole number from ``start`` on at which ``reach``, which falls, is at most ``distance``."""
    from scipy.optimize import brentq

    if reach(start) <= distance:
        return start
    if reach(MOST) > distance:
        return math.inf
    return math.ceil(math.exp(brentq(lambda x: reach(math.exp(x)) - distance, math.log(start), math.log(MOST))))


def _most(n: float) -> str:
    return f" to {_rounded(n):,}" if n < ENOUGH_SEEDS else " or more"


def _rounded(n: float) -> int:
    """Up to two digits: the spread is an estimate."""
    step: int = 10 ** max(len(str(int(n))) - 2, 0)
    return math.ceil(n / step) * step
