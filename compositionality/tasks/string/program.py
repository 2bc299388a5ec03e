"""Compositions of functions as programs: built, written, read back, carried out; shorter ones and other orders.

A ``Program`` is the one form of a composition, chain or tree: its calls in the order in which they are applied. Nothing
is ever executed as code.
"""

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations, permutations, product
from typing import NamedTuple, TypeVar

from compositionality.errors import UserError
from compositionality.tasks.string.functions import ALIASES, Function, Parameter

CONCAT = Function(-1, "+", operator.add, binary=True)
METHODS = tuple(Function(-2, name, getattr(str, name)) for name in ("upper", "lower", "capitalize", "swapcase"))
MAX_LENGTH = 1_000_000  # characters of a value; the paper's longest have some thousand
LONGEST = 10_000  # characters of a value from which shorter compositions are followed
MAX_DEPTH = 200
MAX_PARAMETER = 1000
MAX_VALUES = 1024  # shorter values of one part that are followed: those of every chain of ten operators
ALL_ORDERS = 6  # functions of the longest chain of which every order is tried
INPUT = -1
Source = int | str
"""Where a string comes from: the number of a call, INPUT (the input x), or a literal string itself."""
Made = TypeVar("Made")


class Call(NamedTuple):
    """A function (``func_N``, ``+`` or a string method) with a source for each argument, and its parameter.

    ``frozen``: the compact style leaves the parameter out. Alone, a call is a step on any string.
    """

    function: Function
    sources: tuple[Source, ...] = (INPUT,)
    parameter: Parameter | None = None
    frozen: bool = False

    @property
    def operator(self) -> str:
        return self.function.alias

    @property
    def open_slots(self) -> tuple[int, ...]:
        """Return which arguments are not literals."""
        return tuple([slot for slot, source in enumerate(self.sources) if isinstance(source, int)])

    def __call__(self, *strings: str) -> str:
        """Return what the function makes of strings, one per open slot."""
        if len(strings) == len(self.sources):
            return self.run(strings)
        values = iter(strings)
        return self.run([source if isinstance(source, str) else next(values) for source in self.sources])

    def apply(self, values: Sequence[str]) -> str:
        """Return what the operator makes of the strings of its arguments.

        UserError before a value of over ``MAX_LENGTH`` characters can arise: no function writes more than its
        arguments times its number, or its text after every character.
        """
        parameter = self.parameter
        times = len(parameter) + 1 if isinstance(parameter, str) else parameter or 1
        if sum(map(len, values)) * times > MAX_LENGTH:
            raise UserError(f"{self.operator} would work on over {MAX_LENGTH:,} characters")
        return self.run(values)

    def run(self, values: Sequence[str]) -> str:
        """Return ``apply`` for values known to be short."""
        run = self.function.run
        return run(*values) if self.parameter is None else run(*values, self.parameter)

    def text(self, arguments: Sequence[str]) -> str:
        if self.function is CONCAT:
            return f"({arguments[0]} + {arguments[1]})"
        if self.function in METHODS:
            return f"({arguments[0]}).{self.operator}()"
        rest = [] if self.parameter is None else [repr(self.parameter)]
        return f"{self.operator}({', '.join([*arguments, *rest])})"


class Applied(NamedTuple):
    """A call with the strings of its arguments and its value; ``name``: what the traces of a problem call it."""

    call: Call
    strings: tuple[str, ...]
    value: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """A function of the input x: calls in the order in which they are applied, each used once, and its result's source.

    The result is that of the last call; without calls it is x or a literal.
    """

    calls: tuple[Call, ...] = ()
    result: Source = INPUT

    def fold(self, leaf: Callable[[Source], Made], join: Callable[[Call, list[Made]], Made]) -> Made:
        """Return what ``join`` makes of the last call and of what it made of the arguments; ``leaf`` of x, literals."""
        results: list[Made] = []
        for call in self.calls:
            results.append(join(call, [results[s] if isinstance(s, int) and s >= 0 else leaf(s) for s in call.sources]))
        return results[-1] if results else leaf(self.result)

    @property
    def text(self) -> str:
        return self.fold(lambda source: repr(source) if isinstance(source, str) else "x", Call.text)

    @property
    def depth(self) -> int:
        """Return the most operators on a way from x or a literal to the result."""
        return self.fold(lambda _: 0, lambda _, below: 1 + max(below))

    @property
    def functions(self) -> list[str]:
        """Return the ``func_N`` that occur, outermost first, with repetitions."""

        def names(call: Call, below: list[list[str]]) -> list[str]:
            return [call.operator] * (call.function.id >= 0) + [name for part in below for name in part]

        return self.fold(lambda _: [], names)

    @property
    def uses_input(self) -> bool:
        return self.result == INPUT or any(INPUT in call.sources for call in self.calls)

    def apply(self, x: str) -> Iterator[Applied]:
        """Yield the calls with their true strings on the input ``x``. UserError before one that gets too long."""
        values: list[str] = []
        for call in self.calls:
            arguments = tuple([s if isinstance(s, str) else x if s == INPUT else values[s] for s in call.sources])
            values.append(call.apply(arguments))
            yield Applied(call, arguments, values[-1])

    def value(self, x: str) -> str:
        """Return the value for the input ``x``. UserError if one on the way gets too long."""
        return self.fold(lambda source: source if isinstance(source, str) else x, Call.apply)


def join(function: Function, arguments: Sequence[Program], parameter: Parameter | None = None) -> Program:
    """Return the program of a function applied to the results of others."""
    calls: list[Call] = []
    sources: list[Source] = []
    for program in arguments:
        start = len(calls)
        for call in program.calls:
            moved = [s + start if isinstance(s, int) and s >= 0 else s for s in call.sources] if start else call.sources
            calls.append(call._replace(sources=tuple(moved)) if start else call)
        sources.append(len(calls) - 1 if program.calls else program.result)
    return Program((*calls, Call(function, tuple(sources), parameter)), len(calls))


def frozen_call(function: Function) -> Call:
    return Call(function, parameter=function.frozen, frozen=True)


def chain_of(steps: Iterable[Call]) -> Program:
    """Return the program that takes x through ``steps``, the first one first."""
    calls = [step._replace(sources=(place, *step.sources[1:])) for place, step in enumerate(steps, INPUT)]
    return Program(tuple(calls), len(calls) - 1)


def steps_of(program: Program) -> tuple[Call, ...] | None:
    """Return the steps of a program that is a chain of functions on x; None for any other."""
    for place, call in enumerate(program.calls, INPUT):
        if call.function.id < 0 or call.sources[0] != place or call.open_slots != (0,):
            return None
    steps = tuple([call._replace(sources=(INPUT, *call.sources[1:])) for call in program.calls])
    return None if isinstance(program.result, str) else steps


# ---- reading text


@lru_cache(maxsize=200_000)
def parse_program(code: str) -> Program:
    """Return the expression that ``main_solution`` returns in the text of a program (``ref_code``).

    UserError for anything else. An audit reads the same program several times.
    """
    _, main, body = code.rpartition("def main_solution(")
    _, returns, text = body.partition("return ")
    if not main or not returns:
        raise UserError(f"no main_solution with a return in {code[:60]!r}")
    return parse(text.strip())


def parse(text: str) -> Program:
    """Read a program back from the Python text of its expression; UserError if it is anything else."""
    try:
        return _convert(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"not an expression of the string task: {text[:60]!r}") from error


def _convert(node: ast.expr, depth: int = 0) -> Program:
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    match node:
        case ast.Name(id="x"):
            return Program()
        case ast.Constant(value=str(literal)):
            return Program(result=literal)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return join(CONCAT, [_convert(left, depth + 1), _convert(right, depth + 1)])
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[], keywords=[]):
            for method in METHODS:
                if method.name == name:
                    return join(method, [_convert(inner, depth + 1)])
        case ast.Call(func=ast.Name(id=alias), args=arguments, keywords=[]) if alias in ALIASES:
            return _convert_call(ALIASES[alias], arguments, depth + 1)
    raise ValueError(ast.dump(node)[:60])


def _convert_call(function: Function, arguments: list[ast.expr], depth: int) -> Program:
    if len(arguments) != 1 + function.parametrised:
        raise ValueError(f"{function.alias} with {len(arguments)} arguments")
    if function.binary or not function.parametrised:
        return join(function, [_convert(argument, depth) for argument in arguments])
    kind = str if function.takes_text else type(function.choices[0])
    match arguments[1]:
        case ast.Constant(value=int(parameter) | str(parameter)) if isinstance(parameter, kind):
            if isinstance(parameter, int) and parameter > MAX_PARAMETER:
                raise ValueError(f"{function.alias} with a number over {MAX_PARAMETER}")
            return join(function, [_convert(arguments[0], depth)], parameter)
    raise ValueError(f"{function.alias} with a parameter that is no {kind.__name__}")


# ---- shorter compositions and other orders


@dataclass(frozen=True, slots=True)
class Walk:
    """An input on its way through a chain: its value after ``steps``, and what shorter subsequences of them give."""

    input: str
    value: str
    steps: tuple[Call, ...] = ()  # the first one first
    shorter: frozenset[str] = frozenset()

    def step(self, call: Call, limit: int) -> "Walk | None":
        """Return the walk with one step more; None if its value is too long or a shorter subsequence gives it.

        A chain is irreducible only if each of its beginnings is. None of over ``LONGEST`` characters is followed.
        """
        value = call(self.value)
        if value == self.value or value in self.shorter or not 0 < len(value) <= limit:
            return None
        longer = {call(text) for text in self.shorter if len(text) <= LONGEST}
        if value in longer:
            return None
        return Walk(self.input, value, (*self.steps, call), self.shorter | longer | {self.value})


def real_depths(applied: Sequence[Applied]) -> list[int]:
    """Return for each step how many operators on the longest path from x to it change what they are given.

    A no-op adds nothing, and neither does anything below a constant, which folds into a literal: its depth is -1.
    """
    depths: list[int] = []
    for call, strings, value, _ in applied:
        below = max([-1 if isinstance(s, str) else 0 if s == INPUT else depths[s] for s in call.sources])
        depths.append(below if below < 0 or value in strings else below + 1)
    return depths


def is_reducible(program: Program, x: str) -> bool:
    """Return whether the program without some of its calls has the same value on ``x``.

    Removing a call replaces it by one of its arguments. Of a part with over ``MAX_VALUES`` shorter values only the
    first are followed.
    """
    parts: list[list[str]] = []  # of every call: its value, then those of shorter programs, in a fixed order
    for call in program.calls:
        parts_of_call = [[s] if isinstance(s, str) else [x] if s == INPUT else parts[s] for s in call.sources]
        open_parts = [parts_of_call[slot] for slot in call.open_slots] or parts_of_call
        shorter = dict.fromkeys(text for texts in open_parts for text in texts)
        choices = product(*parts_of_call)
        value = call.apply(next(choices))
        for values in choices:
            if value in shorter or len(shorter) >= MAX_VALUES:
                break
            if sum(map(len, values)) <= LONGEST:
                shorter[call.run(values)] = None
        if value in shorter:
            return True
        parts.append([value, *shorter])
    return False


def another_order(steps: Sequence[Call], x: str, answer: str) -> bool:
    """Return whether the steps give ``answer`` on ``x`` in another order too; steps that are equal count as one.

    Of a chain longer than ALL_ORDERS every exchange of two functions is tried.
    """
    numbers = tuple([steps.index(step) for step in steps])
    if len(steps) <= ALL_ORDERS:
        orders = set(permutations(numbers))
    else:
        pairs = combinations(range(len(numbers)), 2)
        orders = {(*numbers[:i], numbers[j], *numbers[i + 1 : j], numbers[i], *numbers[j + 1 :]) for i, j in pairs}
    return any(reduce(lambda text, number: steps[number](text), order, x) == answer for order in orders - {numbers})
