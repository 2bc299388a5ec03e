"""Stage 0 of a problem: which items there are, and which item holds which (iGSM's structure graph)."""

import itertools
from collections.abc import Sequence
from math import exp

from compositionality.tasks.draws import Draws
from compositionality.tasks.igsm.graph import Item, Quantity

SIZES = (2, 3, 4)
"""Layers, and items in a layer."""
_RESOLUTION = 1 << 30


def weighted(draws: Draws, weights: Sequence[float]) -> int:
    """An index, with a chance in proportion to its weight."""
    shares = [max(1, round(weight * _RESOLUTION)) for weight in weights]
    place = draws.below(sum(shares))
    for index, share in enumerate(shares):
        place -= share
        if place < 0:
            return index
    raise AssertionError


def unit(draws: Draws) -> float:
    """A number in (0, 1)."""
    return (draws.below(_RESOLUTION) + 0.5) / _RESOLUTION


def draw_structure(draws: Draws, operations: int, most_edges: int) -> list[Quantity]:
    """The instances (owner, item) of one problem: every item above the finest layer holds at least one.

    More operations make more layers and wider ones a little more likely, as in iGSM.
    """
    logits = [-(((operations - 1) / 19 - centre) ** 2) for centre in (0.2, 0.5, 0.8)]
    weights = [exp(logit) for logit in logits]
    layers = SIZES[weighted(draws, weights)]
    narrow, wide = sorted((SIZES[weighted(draws, weights)], SIZES[weighted(draws, weights)]))
    least, most = (layers - 1) * narrow, (layers - 1) * wide * wide
    edges = min(most, *(draws.between(least, max(least, most_edges)) for _ in range(2)))
    return _connect(draws, _widths(draws, layers, narrow, wide, edges), edges)


def _widths(draws: Draws, layers: int, narrow: int, wide: int, edges: int) -> list[int]:
    """Items in each layer: grown from ``narrow`` until the edges fit, and on as long as a coin allows."""
    widths, coin = [narrow] * layers, unit(draws)
    while min(widths) < wide and sum(widths[1:]) < edges:
        room = sum(low * high for low, high in itertools.pairwise(widths))
        if room >= edges and unit(draws) >= coin:
            break
        widths[draws.choice([layer for layer in range(layers) if widths[layer] < wide])] += 1
    return widths


def _connect(draws: Draws, widths: Sequence[int], edges: int) -> list[Quantity]:
    """One item for each owner, then others at random up to ``edges``."""
    everything = [
        Quantity(Item(layer + 1, owner), layer, item)
        for layer in range(len(widths) - 1)
        for owner in range(widths[layer + 1])
        for item in range(widths[layer])
    ]
    by_owner: dict[Item, list[Quantity]] = {}
    for one in everything:
        by_owner.setdefault(one.owner, []).append(one)
    chosen = {draws.choice(held) for held in by_owner.values()}
    rest = [one for one in everything if one not in chosen]
    while rest and len(chosen) < edges:
        chosen.add(rest.pop(draws.below(len(rest))))
    return sorted(chosen)
