"""Which steps a written solution takes: the plain one, and with behaviours injected.

- *subgoals*: an equation is worked out one operation at a time;
- *analysis*: what the problem says of a quantity is repeated before it is worked out;
- *reflection*: now and then a quantity is tried that cannot be known yet, noticed, and left for later.

No step states a wrong value. Mechanics are those of the paper's released code (README.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compositionality.tasks.behaviours import Behaviours
from compositionality.tasks.draws import Draws
from compositionality.tasks.igsm.graph import Quantity, QuantityGraph, evaluate, numbers_in
from compositionality.tasks.igsm.structure import unit

_TO_REDUNDANT = 0.3


@dataclass(frozen=True, slots=True)
class SolutionStep:
    """One line of a solution: a quantity worked out, or (``missing``) tried though these are not known yet."""

    quantity: Quantity
    analysed: bool = False
    missing: tuple[Quantity, ...] = ()
    again: bool = False  # it was tried before


def plan_steps(problem: QuantityGraph, behaviours: Behaviours, draws: Draws) -> list[SolutionStep]:
    """The lines of a solution, the question's last."""
    return _Walk(problem, behaviours, draws).steps()


def values_along(problem: QuantityGraph, steps: Sequence[SolutionStep]) -> dict[Quantity, int]:
    """The values of all quantities that the steps work out."""
    values: dict[Quantity, int] = {}
    for step in steps:
        if not step.missing:
            values[step.quantity] = evaluate(numbers_in(problem.expression(step.quantity), values), problem.modulus)
    return values


class _Walk:
    def __init__(self, problem: QuantityGraph, behaviours: Behaviours, draws: Draws) -> None:
        self.problem, self.behaviours, self.draws = problem, behaviours, draws
        self.redundant = [one for one in problem.equations if one not in problem.order]
        self.solved: set[Quantity] = set()
        self.tried: set[Quantity] = set()
        self.found: list[SolutionStep] = []

    def steps(self) -> list[SolutionStep]:
        order, place = self.problem.order, 0
        while place < len(order):
            if order[place] in self.solved:
                place += 1
                continue
            if self._deviates(place) and (target := self._target(place)) is not None:
                self._take(target)
                continue
            self._take(order[place])
            place += 1
        return self.found

    def _deviates(self, place: int) -> bool:
        inside = 0 < place < len(self.problem.order) - 1
        return inside and not self.found[-1].missing and unit(self.draws) < self.behaviours.reflection

    def _target(self, place: int) -> Quantity | None:
        """What is tried out of turn, never the question; None if nothing is left."""
        later = [one for one in self.problem.order[place + 1 : -1] if one not in self.solved]
        beside = [one for one in self.redundant if one not in self.solved]
        if beside and (not later or unit(self.draws) < _TO_REDUNDANT):
            return self.draws.choice(beside)
        return self.draws.choice(later) if later else None

    def _take(self, one: Quantity) -> None:
        missing = tuple(parent for parent in dict.fromkeys(self.problem.parents(one)) if parent not in self.solved)
        terms = self.problem.expression(one)
        eligible = not one.is_abstract and any(isinstance(part, Quantity) for part in terms)
        count = sum(not isinstance(part, str) for part in terms)
        analysed = eligible and unit(self.draws) < self.behaviours.analysis_chance(count)
        self.found.append(SolutionStep(one, analysed, missing, again=one in self.tried))
        self.tried.add(one)
        if not missing:
            self.solved.add(one)


def other_order(problem: QuantityGraph, draws: Draws) -> QuantityGraph:
    """The same problem, worked out in another order (random topological, the question last)."""
    left, order = list(problem.order[:-1]), list[Quantity]()
    while left:
        free = [one for one in left if not any(parent in left for parent in problem.parents(one))]
        order.append(draws.choice(free))
        left.remove(order[-1])
    return replace(problem, order=(*order, problem.asked))


def other_premises(problem: QuantityGraph, draws: Draws) -> QuantityGraph:
    """The same problem, its premises in another order."""
    return replace(problem, equations={one: problem.equations[one] for one in draws.shuffled(problem.equations)})
