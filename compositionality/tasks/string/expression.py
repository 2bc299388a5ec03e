"""Expressions over the input x: build, render, read back, apply step by step; shorter ones and other orders.

Nothing is ever executed as code.
"""

import ast
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, count, permutations, product
from typing import NamedTuple

from compositionality.errors import UserError
from compositionality.tasks.string.functions import ALIASES, Chain, Operation, Parameter, apply_all

METHODS = ("upper", "lower", "capitalize", "swapcase")
CONCAT = "+"
MAX_LENGTH = 1_000_000  # characters of a value; the paper's longest have some thousand
LONGEST = 10_000  # characters of a value from which shorter compositions are followed
MAX_DEPTH = 200
MAX_PARAMETER = 1000
MAX_VALUES = 1024  # shorter values of one sub-expression that are followed: those of every chain of ten operators
ALL_ORDERS = 6  # functions of the longest chain of which every order is tried
INPUT = -1  # where a step takes the input x instead of an earlier step's value


@dataclass(frozen=True, slots=True)
class Input:
    """The input x."""


@dataclass(frozen=True, slots=True)
class Text:
    """A literal string."""

    text: str


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator (``func_N``, ``+`` or a string method) on one or two sub-expressions."""

    operator: str
    arguments: "tuple[Expression, ...]"
    parameter: Parameter | None = None


Expression = Input | Text | Apply


# ---- text


def chain_text(chain: Chain) -> str:
    """Return the Python text of the chain applied to x."""
    text = "x"
    for operation in reversed(chain):
        parameter = operation.parameter
        rest = "" if parameter is None else f", {parameter!r}"
        text = f"{operation.function.alias}({text}{rest})"
    return text


def render(expression: Expression) -> str:
    """Return the Python text of an expression."""
    if isinstance(expression, Input):
        return "x"
    if isinstance(expression, Text):
        return repr(expression.text)
    parts = [render(argument) for argument in expression.arguments]
    if expression.operator == CONCAT:
        return f"({parts[0]} + {parts[1]})"
    if expression.operator in METHODS:
        return f"({parts[0]}).{expression.operator}()"
    if expression.parameter is not None:
        parts.append(repr(expression.parameter))
    return f"{expression.operator}({', '.join(parts)})"


@lru_cache(maxsize=200_000)
def parse_program(code: str) -> Expression:
    """Return the expression that ``main_solution`` returns in the text of a program (``ref_code``).

    UserError for anything else. An audit reads the same program several times.
    """
    _, main, body = code.rpartition("def main_solution(")
    _, returns, text = body.partition("return ")
    if not main or not returns:
        raise UserError(f"no main_solution with a return in {code[:60]!r}")
    return parse(text.strip())


def parse(text: str) -> Expression:
    """Read an expression back from its Python text; UserError if it is anything else."""
    try:
        return _convert(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"not an expression of the string task: {text[:60]!r}") from error


def _convert(node: ast.expr, depth: int = 0) -> Expression:
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    match node:
        case ast.Name(id="x"):
            return Input()
        case ast.Constant(value=str(literal)):
            return Text(literal)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return Apply(CONCAT, (_convert(left, depth + 1), _convert(right, depth + 1)))
        case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[], keywords=[]) if method in METHODS:
            return Apply(method, (_convert(inner, depth + 1),))
        case ast.Call(func=ast.Name(id=alias), args=arguments, keywords=[]) if alias in ALIASES:
            return _convert_call(alias, arguments, depth + 1)
    raise ValueError(ast.dump(node)[:60])


def _convert_call(alias: str, arguments: list[ast.expr], depth: int) -> Apply:
    function = ALIASES[alias]
    if len(arguments) != 1 + function.parametrised:
        raise ValueError(f"{alias} with {len(arguments)} arguments")
    if function.binary:
        return Apply(alias, (_convert(arguments[0], depth), _convert(arguments[1], depth)))
    if not function.parametrised:
        return Apply(alias, (_convert(arguments[0], depth),))
    kind = str if function.takes_text else type(function.choices[0])
    match arguments[1]:
        case ast.Constant(value=int(parameter) | str(parameter)) if isinstance(parameter, kind):
            if isinstance(parameter, int) and parameter > MAX_PARAMETER:
                raise ValueError(f"{alias} with a number over {MAX_PARAMETER}")
            return Apply(alias, (_convert(arguments[0], depth),), parameter)
    raise ValueError(f"{alias} with a parameter that is no {kind.__name__}")


def nodes(expression: Expression) -> Iterator[Expression]:
    """Yield all nodes, outermost first."""
    yield expression
    if isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from nodes(argument)


def uses_input(expression: Expression) -> bool:
    """Return whether x occurs in it."""
    return any(isinstance(node, Input) for node in nodes(expression))


def function_names(expression: Expression) -> list[str]:
    """Return the ``func_N`` that occur, outermost first, with repetitions."""
    applied = (node.operator for node in nodes(expression) if isinstance(node, Apply))
    return [operator for operator in applied if operator != CONCAT and operator not in METHODS]


def depth(expression: Expression) -> int:
    """Return the most operators on a path from the root to a leaf."""
    return 1 + max(map(depth, expression.arguments)) if isinstance(expression, Apply) else 0


# ---- values


class Call(NamedTuple):
    """One operator on its way to the value of an expression.

    ``name`` is what traces call it ("" for ``+`` and methods, which have none). ``sources`` has an entry per argument:
    the number of an earlier step, INPUT, or a literal string; ``given`` are the strings of all arguments.
    """

    name: str
    node: Apply
    sources: tuple[int | str, ...]
    given: tuple[str, ...]
    value: str

    @property
    def open_slots(self) -> tuple[int, ...]:
        """Return which arguments are not literals."""
        return tuple([slot for slot, source in enumerate(self.sources) if isinstance(source, int)])

    def apply(self, given: Sequence[str]) -> str:
        """Return what the operator makes of ``given``, one string per open slot."""
        strings = iter(given)
        values = [source if isinstance(source, str) else next(strings) for source in self.sources]
        return apply_operator(self.node, values)


def apply_operator(node: Apply, values: Sequence[str]) -> str:
    """Return what the operator of ``node`` makes of the values of its arguments."""
    if node.operator == CONCAT:
        return values[0] + values[1]
    if node.operator in METHODS:
        return str(getattr(str, node.operator)(values[0]))
    run = ALIASES[node.operator].run
    return run(*values) if node.parameter is None else run(*values, node.parameter)


def apply_bounded(node: Apply, values: Sequence[str]) -> str:
    """Return ``apply_operator``, or raise UserError before a value of over ``MAX_LENGTH`` characters can arise.

    No function writes more than its arguments times its number, or its text behind every character.
    """
    times = len(node.parameter) + 1 if isinstance(node.parameter, str) else node.parameter or 1
    if sum(map(len, values)) * times > MAX_LENGTH:
        raise UserError(f"{node.operator} would work on over {MAX_LENGTH:,} characters")
    return apply_operator(node, values)


def evaluate(expression: Expression, x: str) -> str:
    """Return the value of an expression for the input ``x``. UserError if a value on the way gets too long."""
    if isinstance(expression, Input):
        return x
    if isinstance(expression, Text):
        return expression.text
    return apply_bounded(expression, [evaluate(argument, x) for argument in expression.arguments])


def steps(expression: Expression, x: str) -> Iterator[Call]:
    """Yield the operators in the order in which they are applied, with their true strings on the input ``x``.

    UserError before one whose value gets too long.
    """
    yield from _steps(expression, x, count())


def _steps(expression: Expression, x: str, numbers: Iterator[int]) -> Generator[Call, None, tuple[int | str, str]]:
    """Yield the steps of an expression, arguments first; return where its value is from and the value."""
    if isinstance(expression, Text):
        return expression.text, expression.text
    if isinstance(expression, Input):
        return INPUT, x
    sources: list[int | str] = []
    given: list[str] = []
    for argument in expression.arguments:
        source, text = yield from _steps(argument, x, numbers)
        sources.append(source)
        given.append(text)
    value = apply_bounded(expression, given)
    name = expression.operator if expression.operator in ALIASES else ""
    yield Call(name, expression, tuple(sources), tuple(given), value)
    return next(numbers), value


# ---- shorter compositions and other orders


@dataclass(frozen=True, slots=True)
class Walk:
    """An input on its way through a chain: its value after ``steps``, and what shorter subsequences of them give."""

    input: str
    value: str
    steps: Chain = ()  # the first one first
    shorter: frozenset[str] = frozenset()

    def step(self, operation: Operation, limit: int) -> "Walk | None":
        """Return the walk with one operation more; None if its value is too long or a shorter subsequence gives it.

        A chain is irreducible only if each of its beginnings is. None of over ``LONGEST`` characters is followed.
        """
        value = operation(self.value)
        if value == self.value or value in self.shorter or not 0 < len(value) <= limit:
            return None
        longer = {operation(text) for text in self.shorter if len(text) <= LONGEST}
        if value in longer:
            return None
        return Walk(self.input, value, (*self.steps, operation), self.shorter | longer | {self.value})


def is_reducible(expression: Expression, x: str) -> bool:
    """Return whether the expression without some of its operators has the same value on ``x``.

    Removing an operator replaces it by one of its arguments. Of a sub-expression with over ``MAX_VALUES``
    shorter values only the first are followed.
    """
    return _values(expression, x) is None


def _values(expression: Expression, x: str) -> tuple[str, dict[str, None]] | None:
    """Return the value, and those of the shorter expressions in a fixed order; None if a part is reducible."""
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
        if value in shorter or len(shorter) >= MAX_VALUES:
            break
        if sum(map(len, values)) <= LONGEST:
            shorter[apply_operator(expression, list(values))] = None
    return None if value in shorter else (value, shorter)


def another_order(steps: Chain, x: str, answer: str) -> bool:
    """Return whether the steps (innermost first) give ``answer`` on ``x`` in another order too; equal steps are one.

    Of a chain longer than ALL_ORDERS every exchange of two functions is tried.
    """
    numbers = tuple([steps.index(step) for step in steps])
    orders = set(permutations(numbers)) if len(steps) <= ALL_ORDERS else set(_exchanges(numbers))
    return any(apply_all([steps[number] for number in order], x) == answer for order in orders - {numbers})


def as_chain(expression: Expression) -> Chain | None:
    """Return the functions, innermost first, of an expression that is a chain of them on x; else None."""
    steps: list[Operation] = []
    while isinstance(expression, Apply):
        function, (inner, *others) = ALIASES.get(expression.operator), expression.arguments
        if function is None or not all(isinstance(other, Text) for other in others):
            return None
        parameter = next((other.text for other in others if isinstance(other, Text)), expression.parameter)
        steps.append(Operation(function, parameter))
        expression = inner
    return tuple(steps[::-1]) if isinstance(expression, Input) else None


def _exchanges(numbers: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    for i, j in combinations(range(len(numbers)), 2):
        yield (*numbers[:i], numbers[j], *numbers[i + 1 : j], numbers[i], *numbers[j + 1 :])
