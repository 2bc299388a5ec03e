"""Random trees for the clean mode: every operator has x below it, and one path has full depth."""

from collections.abc import Callable, Sequence

from compositionality.tasks.draws import Draws
from compositionality.tasks.string.expression import CONCAT, Apply, Expression, Input, Text, apply_operator
from compositionality.tasks.string.functions import Function, Parameter

LITERAL_LENGTHS = (2, 4)
DrawParameter = Callable[[Draws, Function], Parameter | None]


def draw_tree(
    draws: Draws, depth: int, functions: Sequence[Function], parameter: DrawParameter, alphabet: str
) -> Expression:
    """A tree of exactly ``depth``; operators are uniform over the functions and concatenation."""
    if depth == 0:
        return Input()
    number = draws.below(len(functions) + 1)
    function = functions[number] if number < len(functions) else None
    main = draw_tree(draws, depth - 1, functions, parameter, alphabet)
    if function is not None and not function.binary:
        return Apply(function.alias, (main,), parameter(draws, function))
    other = _second_argument(draws, depth - 1, functions, parameter, alphabet, literal=function is not None)
    arguments = (main, other) if draws.below(2) else (other, main)
    return Apply(function.alias if function else CONCAT, arguments)


def _second_argument(
    draws: Draws, depth: int, functions: Sequence[Function], parameter: DrawParameter, alphabet: str, *, literal: bool
) -> Expression:
    """x, or a tree that is at most ``depth`` deep, or (for interlacing only) a literal.

    Concatenation with a literal would be ``func_5`` or ``func_6`` (held out) under another name.
    """
    kind = draws.below(3 if literal else 2)
    if kind == 2:
        return Text(draws.text(alphabet, draws.between(*LITERAL_LENGTHS)))
    return draw_tree(draws, 0 if kind == 0 else draws.below(depth + 1), functions, parameter, alphabet)


def evaluate_soundly(expression: Expression, x: str, max_length: int) -> str | None:
    """The value, or None if an operator changes nothing, leaves the bounds, or weaves a string with its own copy.

    The last would be ``func_14`` (held out) under another name.
    """
    if isinstance(expression, Input):
        return x
    if isinstance(expression, Text):
        return expression.text
    values = []
    for argument in expression.arguments:
        value = evaluate_soundly(argument, x, max_length)
        if value is None:
            return None
        values.append(value)
    if len(values) == 2 and expression.operator != CONCAT and _one_begins_the_other(*values):
        return None
    result = apply_operator(expression, values)
    return result if 0 < len(result) <= max_length and result not in values else None


def _one_begins_the_other(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
