"""Fast draws from a ``random.Random``: its own ``choice`` and ``randint`` take three times as long."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

Item = TypeVar("Item")
Exchange = tuple[str, str]
"""A prompt and its response."""
Kind = Callable[[Random], Exchange]


def pick(rng: Random, items: Sequence[Item]) -> Item:
    """Return one of ``items``."""
    return items[int(rng.random() * len(items))]


def between(rng: Random, low: int, high: int) -> int:
    """Return a whole number from ``low`` to ``high``, both included."""
    return low + int(rng.random() * (high - low + 1))


def text_of(rng: Random, letters: Sequence[str], count: int) -> str:
    """Return a text of ``count`` of ``letters``."""
    return "".join([pick(rng, letters) for _ in range(count)])


def by_share(rng: Random, shares: Sequence[tuple[float, Kind]]) -> Exchange:
    """Return an exchange of one of these kinds, each drawn as often as its share says; the last takes what is left."""
    draw = rng.random()
    for share, kind in shares:
        if draw < share:
            return kind(rng)
        draw -= share
    return shares[-1][1](rng)
