"""Whether a shorter composition gives the same answer: operators left out, the order of the others kept.

A model that skips a step of such a *reducible* problem is still judged correct.
"""

from dataclasses import dataclass
from itertools import product

from compositionality.tasks.string.expression import Apply, Expression, Text, apply_bounded, apply_operator, evaluate
from compositionality.tasks.string.functions import Operation
from compositionality.tasks.string.options import LONGEST

MOST_VALUES = 1024
"""Values of one sub-expression that ``is_reducible`` keeps: those of every chain of ten operators."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A string on its way through a chain: its value, and what any shorter subsequence of the steps gives."""

    value: str
    shorter: frozenset[str] = frozenset()

    def step(self, operation: Operation, limit: int) -> "Walk | None":
        """One operation more; None where that many characters are too many, or a shorter subsequence gives the value.

        A chain is irreducible only if each of its beginnings is. None of over ``LONGEST`` characters is followed.
        """
        value = operation(self.value)
        if value == self.value or value in self.shorter or not 0 < len(value) <= limit:
            return None
        longer = {operation(text) for text in self.shorter if len(text) <= LONGEST}
        return None if value in longer else Walk(value, self.shorter | longer | {self.value})


def is_reducible(expression: Expression, x: str) -> bool:
    """Whether the expression without some of its operators has the same value on ``x``.

    An operator that is left out gives way to one of its arguments. Of a sub-expression with over ``MOST_VALUES``
    shorter values only the first are followed.
    """
    return _values(expression, x) is None


def _values(expression: Expression, x: str) -> tuple[str, dict[str, None]] | None:
    """The value, and those of the shorter expressions in a fixed order; None if a part is reducible."""
    if not isinstance(expression, Apply):
        return evaluate(expression, x), {}
    parts = []
    for argument in expression.arguments:
        part = _values(argument, x)
        if part is None:
            return None
        parts.append(part)
    texts = [isinstance(argument, Text) for argument in expression.arguments]
    kept = [part for part, text in zip(parts, texts, strict=True) if not text or all(texts)]
    shorter = dict.fromkeys(text for value, less in kept for text in (value, *less))
    choices = product(*[(value, *less) for value, less in parts])
    value = apply_bounded(expression, list(next(choices)))
    for values in choices:
        if value in shorter or len(shorter) >= MOST_VALUES:
            break
        if sum(map(len, values)) <= LONGEST:
            shorter[apply_operator(expression, list(values))] = None
    return None if value in shorter else (value, shorter)
