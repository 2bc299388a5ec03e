"""Clues about who stands where, and the arrangements that satisfy them: constraint propagation, then search.

A thing is a number; ``size`` things in a row (0 to size - 1, size to 2·size - 1, …) share an attribute, so that each
stands at another of the positions 0 to size - 1. Sets of positions are bit masks.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

HOLDS: dict[str, Callable[[int, int], bool]] = {
    "same": lambda first, second: first == second,
    "directly left": lambda first, second: first + 1 == second,
    "left": lambda first, second: first < second,
    "next to": lambda first, second: abs(first - second) == 1,
}
"""Clues about two things, by their positions."""
AT, NOT_AT = "at", "not at"
"""Clues about one thing; their ``second`` is a position."""


class Clue(NamedTuple):
    """``kind`` of HOLDS with two things, or AT or NOT_AT with a thing and a position."""

    kind: str
    first: int
    second: int


def solve(size: int, things: int, clues: Sequence[Clue], limit: int = 2) -> list[tuple[int, ...]]:
    """The positions of all things, for up to ``limit`` arrangements that satisfy the clues."""
    domains = [(1 << size) - 1] * things
    for clue in clues:
        if clue.kind in (AT, NOT_AT):
            domains[clue.first] &= 1 << clue.second if clue.kind == AT else ~(1 << clue.second)
    pairs = [clue for clue in clues if clue.kind in HOLDS]
    found: list[tuple[int, ...]] = []
    for one in _search(size, domains, pairs):
        found.append(one)
        if len(found) == limit:
            break
    return found


def fewest_clues(size: int, things: int, clues: Sequence[Clue]) -> list[Clue]:
    """Clues out of ``clues``, the first ones preferred, that leave one arrangement; without any of them more are left.

    ``clues`` must leave one.
    """

    def is_unique(some: Sequence[Clue]) -> bool:
        return len(solve(size, things, some)) == 1

    low, high = 0, len(clues)  # the shortest beginning that leaves one
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_unique(clues[:middle]) else (middle + 1, high)
    kept = list(clues[:high])
    for clue in clues[:high]:
        rest = [one for one in kept if one != clue]
        kept = rest if is_unique(rest) else kept
    return kept


def _search(size: int, domains: list[int], pairs: Sequence[Clue]) -> Iterator[tuple[int, ...]]:
    if not _propagate(size, domains, pairs):
        return
    counts = [domain.bit_count() for domain in domains]
    if max(counts) == 1:
        yield tuple(domain.bit_length() - 1 for domain in domains)
        return
    thing = min((count, at) for at, count in enumerate(counts) if count > 1)[1]
    for position in range(size):
        if domains[thing] >> position & 1:
            yield from _search(size, [*domains[:thing], 1 << position, *domains[thing + 1 :]], pairs)


def _propagate(size: int, domains: list[int], pairs: Sequence[Clue]) -> bool:
    """Shrink the domains as far as single clues and attributes say, in place; False if one becomes empty."""
    before: list[int] = []
    while before != domains:
        before = list(domains)
        for kind, first, second in pairs:
            domains[second] &= _image(kind, size, domains[first], forward=True)
            domains[first] &= _image(kind, size, domains[second], forward=False)
        for start in range(0, len(domains), size):
            _each_elsewhere(size, domains, start)
        if not all(domains):
            return False
    return True


def _each_elsewhere(size: int, domains: list[int], start: int) -> None:
    """A position that is taken is no other thing's; a position that one thing alone can take is that thing's."""
    row = range(start, start + size)
    for thing in row:
        if domains[thing].bit_count() == 1:
            for other in row:
                if other != thing:
                    domains[other] &= ~domains[thing]
    for position in range(size):
        able = [thing for thing in row if domains[thing] >> position & 1]
        if len(able) == 1:
            domains[able[0]] = 1 << position


@cache
def _image(kind: str, size: int, domain: int, *, forward: bool) -> int:
    """Positions that the other thing of a clue can have where this one has those of ``domain``."""
    holds, mask = HOLDS[kind], 0
    for here in range(size):
        if domain >> here & 1:
            for there in range(size):
                if holds(here, there) if forward else holds(there, here):
                    mask |= 1 << there
    return mask
