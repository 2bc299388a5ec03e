"""Drawing one problem: which item holds which, which quantities it needs, what each depends on, what it states beside.

These are stage 0 (iGSM's structure graph) and stages 1 to 5. The law is that of iGSM as the paper on behaviour
injection uses it; differences are in README.md.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from math import exp
from statistics import NormalDist

from compositionality.tasks.draws import Draws
from compositionality.tasks.igsm.graph import (
    Equation,
    Item,
    Quantity,
    QuantityGraph,
    children_of,
    expression_of_total,
    quantities_in,
)

SIZES = (2, 3, 4)  # layers, and items in a layer
MAX_PARENTS = 4  # of an instance, a constant among them
MAX_STAGE_3_TRIES = 50


def draw_problem(
    draws: Draws, operations: int, most_edges: int, modulus: int, *, redundant: bool
) -> QuantityGraph | None:
    """Draw a problem with exactly so many operations; None where the draw comes to nothing (one in four or so)."""
    budget = max(draws.between(1, operations), draws.between(1, operations))
    whole_budget = draws.between(budget, operations)
    for _ in range(MAX_STAGE_3_TRIES):
        graph = _Graph(draw_structure(draws, operations, most_edges))
        chosen = graph.choose_totals(draws, budget)
        unused = [instance for instance in graph.instances if instance not in chosen]
        for _ in range(min(len(unused), whole_budget - graph.cost(chosen))):
            chosen.add(unused.pop(draws.below(len(unused))))
        if graph.arrange(draws, chosen):
            break
    else:
        return None
    return graph.finish(draws, modulus, redundant=redundant) if graph.raise_operations(draws, operations) else None


class _Graph:
    """A problem while it is drawn.

    ``order``: the quantities that it needs. ``parents``: of a total all, of an instance at most one until ``finish``.
    """

    def __init__(self, instances: list[Quantity]) -> None:
        self.instances = instances
        self.totals: list[Quantity] = []
        self.parents: dict[Quantity, tuple[Quantity, ...]] = dict.fromkeys(instances, ())
        self.needed = {instance: {instance} for instance in instances}  # all that a quantity is made of, and itself
        children = children_of(instances)
        for total in [Quantity(owner, layer) for owner in children for layer in range(owner.layer)]:
            parents = quantities_in(expression_of_total(total, children))
            self.totals.append(total)
            self.parents[total] = parents
            self.needed[total] = {total}.union(*[self.needed[parent] for parent in parents])
        self.order: list[Quantity] = []
        self.operations: dict[Quantity, int] = {}

    # ---- stages 1 and 2: what is needed

    def choose_totals(self, draws: Draws, budget: int) -> set[Quantity]:
        """Choose totals with all that they are made of, the highest first, while the operations allow."""
        by_height: dict[int, list[Quantity]] = {}
        for total in self.totals:
            by_height.setdefault(total.owner.layer - total.layer, []).append(total)
        chosen: set[Quantity] = set()
        while True:
            for height in sorted(by_height, reverse=True):
                unused = [total for total in by_height[height] if total not in chosen]
                grown = chosen | self.needed[draws.choice(unused)] if unused else chosen
                if unused and self.cost(grown) <= budget:
                    chosen = grown
                    break
            else:
                return chosen

    def cost(self, chosen: Iterable[Quantity]) -> int:
        return sum([max(1, len(self.parents[quantity]) - 1) for quantity in chosen])

    # ---- stage 3: what depends on what, from the question backwards

    def arrange(self, draws: Draws, chosen: set[Quantity]) -> bool:
        """Put the chosen quantities in order so that the last needs all others; False if that fails."""
        remaining = sorted(chosen, key=_key)
        awaited = Counter([parent for quantity in remaining for parent in self.parents[quantity]])
        pending: set[Quantity] = set()
        strength = abs(NormalDist().inv_cdf(draws.unit()))
        current: Quantity | None = None
        while remaining:
            free = [quantity for quantity in remaining if not awaited[quantity]]
            if current is not None:
                is_pending = not pending.isdisjoint(free)
                if not is_pending and current.is_abstract:
                    return False
                if not current.is_abstract and (not is_pending or draws.unit() < 0.5):
                    parent = _choose(draws, remaining if is_pending else free, pending, strength)
                    self.parents[current] = (parent,)
                    pending.add(parent)
                free = [quantity for quantity in free if quantity in pending]
            current = _choose(draws, free, pending, strength if current else 0.0)
            remaining.remove(current)
            awaited.subtract(self.parents[current])
            pending.update(self.parents[current])
            self.order.append(current)
        self.order.reverse()
        return True

    # ---- stage 4: how many operations each takes, and the other parents

    def raise_operations(self, draws: Draws, operations: int) -> bool:
        """Give instances more operations until there are ``operations`` in all; False if that cannot be."""
        self.operations = {quantity: 1 for quantity in self.order if not quantity.is_abstract}
        missing = operations - self.cost(self.order)
        places = {quantity: place for place, quantity in enumerate(self.order)}
        most = {quantity: min(3, max(1, places[quantity])) for quantity in self.operations}
        if not 0 <= missing <= sum(most.values()) - len(most):
            return False
        open_ = [quantity for quantity in most if most[quantity] > 1]
        for _ in range(missing):
            quantity = draws.choice(open_)
            self.operations[quantity] += 1
            if self.operations[quantity] == most[quantity]:
                open_.remove(quantity)
        return True

    def finish(self, draws: Draws, modulus: int, *, redundant: bool) -> QuantityGraph:
        """Draw equations of the necessary instances, then of the others; the order of the text is that of drawing."""
        equations = {}
        for place, quantity in enumerate(self.order):
            if not quantity.is_abstract:
                equations[quantity] = self._equation(draws, quantity, place, modulus)
        if redundant:
            self._add_redundant(draws, equations, modulus)
        return QuantityGraph(equations, self.order[-1], tuple(self.order), modulus)

    def _equation(self, draws: Draws, quantity: Quantity, place: int, modulus: int) -> Equation:
        operations = self.operations[quantity]
        parents = list(self.parents[quantity])
        size = operations + 1 if operations > 1 else max(draws.between(1, min(2, place + 1)), len(parents))
        others = [other for other in self.order[:place] if other not in parents]
        has_constant = size + (operations == 1) > len(parents) and (not others or draws.unit() < 0.5)
        while len(parents) + has_constant < size:
            pick = draws.below(len(others) + (not has_constant))
            if pick == len(others):
                has_constant = True
            else:
                parents.append(others.pop(pick))
        return _combine(draws, parents, has_constant=has_constant, modulus=modulus)

    # ---- stage 5: what is stated though nothing needs it

    def _add_redundant(self, draws: Draws, equations: dict[Quantity, Equation], modulus: int) -> None:
        """Draw an equation for every other instance: half apart from the necessary ones, half depending on them."""
        unstated = [quantity for quantity in self.instances if quantity not in equations]
        apart: list[Quantity] = []
        defined = list(self.order)
        while unstated:
            quantity = unstated.pop(draws.below(len(unstated)))
            is_apart = draws.unit() < 0.5
            solved = set(defined)
            computable = [
                total for total in self.totals if total not in solved and solved.issuperset(self.parents[total])
            ]
            pool = list(apart) if is_apart else defined + computable
            size = 1
            while size < MAX_PARENTS and draws.unit() < 0.5:
                size += 1
            has_constant = not pool or draws.unit() < 0.5
            parents: list[Quantity] = []
            while pool and len(parents) + has_constant < size:
                parents.append(pool.pop(draws.below(len(pool))))
            has_constant |= not parents
            equations[quantity] = _combine(draws, parents, has_constant=has_constant, modulus=modulus)
            defined.append(quantity)
            if is_apart:
                apart.append(quantity)


def _combine(draws: Draws, parents: list[Quantity], *, has_constant: bool, modulus: int) -> Equation:
    """Draw an equation of these parents: a sum, of two also a difference; a constant is added or multiplied.

    Constants are 0 to 9, or with a modulus 0 to modulus − 1, as factors not 0.
    """
    ordered = draws.shuffled(parents)
    minus = len(ordered) == 2 and draws.unit() < 0.5
    times = has_constant and bool(ordered) and draws.unit() < 0.5
    least = 1 if times and modulus else 0
    constant = draws.between(least, (modulus or 10) - 1) if has_constant else None
    return Equation(constant, tuple(ordered), times, minus)


def _choose(draws: Draws, among: Sequence[Quantity], pending: set[Quantity], strength: float) -> Quantity:
    """Choose one; totals, and what something waits for already, are preferred."""
    logits = [strength * (quantity.is_abstract + (quantity in pending)) for quantity in among]
    top = max(logits)
    return among[draws.weighted([exp(logit - top) for logit in logits])]


def _key(quantity: Quantity) -> tuple[Item, int, int]:
    return quantity.owner, quantity.layer, -1 if quantity.number is None else quantity.number


# ---- stage 0: what holds what


def draw_structure(draws: Draws, operations: int, most_edges: int) -> list[Quantity]:
    """Draw the instances (owner, item) of one problem: every item above the finest layer holds at least one.

    More operations make more layers and wider ones a little more likely, as in iGSM.
    """
    logits = [-(((operations - 1) / 19 - centre) ** 2) for centre in (0.2, 0.5, 0.8)]
    weights = [exp(logit) for logit in logits]
    layers = SIZES[draws.weighted(weights)]
    narrow, wide = sorted((SIZES[draws.weighted(weights)], SIZES[draws.weighted(weights)]))
    least, most = (layers - 1) * narrow, (layers - 1) * wide * wide
    edges = min(most, *(draws.between(least, max(least, most_edges)) for _ in range(2)))
    return _connect(draws, _widths(draws, layers, narrow, wide, edges), edges)


def _widths(draws: Draws, layers: int, narrow: int, wide: int, edges: int) -> list[int]:
    """Draw how many items each layer has: grown from ``narrow`` until the edges fit, and on while a coin allows."""
    widths, coin = [narrow] * layers, draws.unit()
    while min(widths) < wide and sum(widths[1:]) < edges:
        room = sum(low * high for low, high in itertools.pairwise(widths))
        if room >= edges and draws.unit() >= coin:
            break
        widths[draws.choice([layer for layer in range(layers) if widths[layer] < wide])] += 1
    return widths


def _connect(draws: Draws, widths: Sequence[int], edges: int) -> list[Quantity]:
    """Draw one item for each owner, then others up to ``edges``."""
    everything = [
        Quantity(Item(layer + 1, owner), layer, item)
        for layer in range(len(widths) - 1)
        for owner in range(widths[layer + 1])
        for item in range(widths[layer])
    ]
    by_owner: dict[Item, list[Quantity]] = {}
    for quantity in everything:
        by_owner.setdefault(quantity.owner, []).append(quantity)
    chosen = {draws.choice(held) for held in by_owner.values()}
    rest = [quantity for quantity in everything if quantity not in chosen]
    while rest and len(chosen) < edges:
        chosen.add(rest.pop(draws.below(len(rest))))
    return sorted(chosen)
