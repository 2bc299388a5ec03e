"""Whether another order of the same functions gives the same answer."""

from collections.abc import Iterable, Sequence
from itertools import combinations, permutations

from compositionality.tasks.string.expression import Apply, Expression, Input, Text
from compositionality.tasks.string.functions import ALIASES, Chain, Operation

ALL_ORDERS = 6
"""Functions of the longest chain of which every order is tried; of a longer one every exchange of two functions is."""


def another_order(steps: Chain, x: str, answer: str) -> bool:
    """Whether the steps (innermost first) give ``answer`` on ``x`` in another order too; equal steps are one step."""
    numbers = tuple([steps.index(step) for step in steps])
    orders = set(permutations(numbers)) if len(steps) <= ALL_ORDERS else set(_exchanges(numbers))
    return any(_run(steps, order, x) == answer for order in orders - {numbers})


def as_chain(expression: Expression) -> Chain | None:
    """The functions, innermost first, of an expression that is a chain of them on x; else None."""
    steps: list[Operation] = []
    while isinstance(expression, Apply):
        function, (inner, *others) = ALIASES.get(expression.operator), expression.arguments
        if function is None or not all(isinstance(other, Text) for other in others):
            return None
        parameter = next((other.text for other in others if isinstance(other, Text)), expression.parameter)
        steps.append(Operation(function, parameter))
        expression = inner
    return tuple(steps[::-1]) if isinstance(expression, Input) else None


def _run(steps: Chain, order: Sequence[int], text: str) -> str:
    for number in order:
        text = steps[number](text)
    return text


def _exchanges(numbers: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    for i, j in combinations(range(len(numbers)), 2):
        yield (*numbers[:i], numbers[j], *numbers[i + 1 : j], numbers[i], *numbers[j + 1 :])
