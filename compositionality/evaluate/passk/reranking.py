"""How many times as many samples the base needs to solve what a model solves: is RL more than re-ranking?

For every k and every whole budget factor m up to N / k: the model's pass@k − the base's pass@(m·k), paired by problem.
The base meets the model at the least m at which that is no longer above 0. The interval of that m holds the factors at
which the intervals of the differences hold 0; an end that is None lies beyond the largest m. Only where the lower end
does, RL did more than move up what the base finds with as many samples.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compositionality.stats.estimate import Floats

DIGITS = 6
"""Of the figures in passk.json."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Meeting:
    """The budget factor at which the base meets the model, with its interval; None: beyond the largest."""

    factor: int | None
    low: int | None
    high: int | None

    @property
    def more_than_reranking(self) -> bool:
        """True if even with the most samples the base stays below, by the whole interval."""
        return self.low is None


def powers(largest: int) -> list[int]:
    """1, 2, 4 … up to ``largest``."""
    return [1 << power for power in range(largest.bit_length())]


def meeting(factors: Sequence[int], value: Floats, low: Floats, high: Floats) -> Meeting:
    """From the difference at each of the factors with its interval."""
    return Meeting(*(first_at(factors, one <= 0) for one in (value, low, high)))


def first_at(factors: Sequence[int], holds: NDArray[np.bool_]) -> int | None:
    """The first factor at which the condition ``holds``."""
    places = np.flatnonzero(holds)
    return factors[places[0]] if len(places) else None


def reranking_row(k: int, factors: Sequence[int], value: Floats, low: Floats, high: Floats) -> Row:
    """One k: where they meet, and the differences at factors that are powers of two."""
    shown = [place for place, factor in enumerate(factors) if factor in powers(factors[-1])]
    met = meeting(factors, value, low, high)
    differences = {"difference": value, "difference_low": low, "difference_high": high}
    return {
        "k": k,
        "factors": [factors[place] for place in shown],
        **{name: [round(float(of[place]), DIGITS) for place in shown] for name, of in differences.items()},
        **asdict(met),
        "more_than_reranking": met.more_than_reranking,
    }
