"""Expressions over the input x: build, render, read back, evaluate, measure. Nothing is ever executed as code."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from compositionality.errors import UserError
from compositionality.tasks.string.functions import ALIASES, Chain, Operation, Parameter

METHODS = ("upper", "lower", "capitalize", "swapcase")
CONCAT = "+"
MAX_LENGTH = 1_000_000  # characters of a value; the paper's longest have some thousand
MAX_DEPTH = 200
MAX_PARAMETER = 1000


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


def from_chain(chain: Chain) -> Expression:
    """The chain (outermost first) applied to x."""
    expression: Expression = Input()
    for operation in reversed(chain):
        expression = apply_operation(operation, expression)
    return expression


def chain_text(chain: Chain) -> str:
    """Python text of ``from_chain(chain)``, without the detour."""
    text = "x"
    for operation in reversed(chain):
        parameter = operation.parameter
        rest = "" if parameter is None else f", {parameter!r}"
        text = f"{operation.function.alias}({text}{rest})"
    return text


def apply_operation(operation: Operation, inner: Expression) -> Apply:
    """One operation on ``inner``; the second text of an interlacing becomes a literal leaf."""
    function, parameter = operation.function, operation.parameter
    if function.binary:
        return Apply(function.alias, (inner, Text(str(parameter))))
    return Apply(function.alias, (inner,), parameter)


def render(expression: Expression) -> str:
    """Python text of an expression."""
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


def apply_operator(node: Apply, values: list[str]) -> str:
    """The operator of ``node`` on the values of its arguments."""
    if node.operator == CONCAT:
        return values[0] + values[1]
    if node.operator in METHODS:
        return str(getattr(str, node.operator)(values[0]))
    run = ALIASES[node.operator].run
    return run(*values) if node.parameter is None else run(*values, node.parameter)


def apply_bounded(node: Apply, values: list[str]) -> str:
    """``apply_operator``, or a UserError before a value of over ``MAX_LENGTH`` characters can arise.

    No function writes more than its arguments times its number, or its text behind every character.
    """
    times = len(node.parameter) + 1 if isinstance(node.parameter, str) else node.parameter or 1
    if sum(map(len, values)) * times > MAX_LENGTH:
        raise UserError(f"{node.operator} would work on over {MAX_LENGTH:,} characters")
    return apply_operator(node, values)


def evaluate(expression: Expression, x: str) -> str:
    """The value of an expression for the input ``x``. UserError if a value on the way gets too long."""
    if isinstance(expression, Input):
        return x
    if isinstance(expression, Text):
        return expression.text
    return apply_bounded(expression, [evaluate(argument, x) for argument in expression.arguments])


def nodes(expression: Expression) -> Iterator[Expression]:
    """All nodes, outermost first."""
    yield expression
    if isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from nodes(argument)


def uses_input(expression: Expression) -> bool:
    """Whether x occurs in it."""
    return any(isinstance(node, Input) for node in nodes(expression))


def function_names(expression: Expression) -> list[str]:
    """The ``func_N`` that occur, outermost first, with repetitions."""
    applied = (node.operator for node in nodes(expression) if isinstance(node, Apply))
    return [operator for operator in applied if operator != CONCAT and operator not in METHODS]


def parse_program(code: str) -> Expression:
    """The expression that ``main_solution`` returns, from the text of a program (``ref_code``)."""
    _, found, body = code.rpartition("def main_solution(")
    _, returns, text = body.partition("return ")
    if not found or not returns:
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
