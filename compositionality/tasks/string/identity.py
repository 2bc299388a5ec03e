"""What a string problem is recognised by: its expression and input; its composition by text and by behaviour.

A composition is two or more nested operators; parameters and literals aside, it is known by its text, and with them by
its behaviour on fixed strings. Single functions are no compositions: Stage 1 teaches all of them on purpose.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b

from compositionality.errors import UserError
from compositionality.tasks.string.expression import (
    Apply,
    Expression,
    Text,
    evaluate,
    nodes,
    parse_program,
    render,
    uses_input,
)
from compositionality.tasks.task import Identity
from compositionality.types import Problem

PROBES = (
    "abcdefghij",
    "hello",
    "Queue7",
    "aabbccddee",
    "bookkeeper",
    "zyxwvu",
    "A1b2C3d4",
    "racecar",
    "e",
    "xq",
    "«k»-«m»",
    "mississippi9",
    "GHIJklmno",
    "tt_uu|v",
    "oiuae3",
    "dhbfgcjdface",
)


def fingerprint(function: Callable[[str], str]) -> str:
    """A digest of the results on the probes."""
    results = "\x00".join([function(probe) for probe in PROBES])
    return blake2b(results.encode(), digest_size=16).hexdigest()


def string_identity(problem: Problem) -> Identity:
    """The keys of a row. UserError if it is no row of the string task."""
    try:
        truth = json.loads(problem.ground_truth)
        canonical, text, behaviour = program_keys(truth["ref_code"])
        return Identity(f"{canonical} on {truth['ref_input']['x']}", text, behaviour)
    except (KeyError, TypeError, UserError) as error:
        raise UserError(f"is no row of the string task ({error})") from error


@lru_cache(maxsize=200_000)
def program_keys(code: str) -> tuple[str, str | None, str | None]:
    """Canonical text of a program's expression; the composition's text and fingerprint, or None twice."""
    expression = parse_program(code)
    operators = sum(isinstance(node, Apply) for node in nodes(expression))
    if operators < 2 or not uses_input(expression):
        return render(expression), None, None
    return render(expression), render(skeleton(expression)), fingerprint(lambda text: evaluate(expression, text))


def skeleton(expression: Expression) -> Expression:
    """The expression without its parameters and literals."""
    if isinstance(expression, Apply):
        return Apply(expression.operator, tuple(skeleton(argument) for argument in expression.arguments))
    return Text("") if isinstance(expression, Text) else expression
