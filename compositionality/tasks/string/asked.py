"""Whether a prompt asks what its ground truth answers, and the level that a program has."""

import json
import re
from functools import lru_cache

from compositionality.errors import UserError
from compositionality.tasks.string.expression import Apply, Expression, Text, parse_program
from compositionality.tasks.string.functions import ALIASES, Chain, Operation
from compositionality.tasks.string.prompts import compact_prompt, hide_definitions, json_prompt
from compositionality.types import Problem

_OUR_WORDS = json_prompt("", "").partition("\n")[0]
_MAIN = re.compile(r"def main_solution\(.*", re.DOTALL)


def asks_its_truth(problem: Problem) -> bool:
    """Whether the prompt is the one that the truth gives; in the words of others: whether it holds program and input.

    UserError if the row is none of the string task.
    """
    truth = json.loads(problem.ground_truth)
    try:
        code, x = str(truth["ref_code"]), str(truth["ref_input"]["x"])
    except (KeyError, TypeError) as error:
        raise UserError(f"is no row of the string task ({error})") from error
    if truth.get("style") == "compact":
        chain = _chain(parsed_program(code))
        return problem.prompt in {
            compact_prompt(each, x, show_definitions=shown) for each in chain for shown in (False, True)
        }
    whole = json_prompt(code, x)
    if problem.prompt.startswith(_OUR_WORDS):
        return problem.prompt in (whole, hide_definitions(whole))
    main = _MAIN.search(code)
    return main is not None and main[0].strip() in problem.prompt and x in problem.prompt


def program_level(problem: Problem) -> int:
    """How many operators are nested in the program. UserError if the row holds none."""
    try:
        return depth(parsed_program(json.loads(problem.ground_truth)["ref_code"]))
    except (KeyError, TypeError) as error:
        raise UserError(f"is no row of the string task ({error})") from error


def depth(expression: Expression) -> int:
    """The most operators on a path from the root to a leaf."""
    return 1 + max(map(depth, expression.arguments)) if isinstance(expression, Apply) else 0


@lru_cache(maxsize=200_000)
def parsed_program(code: str) -> Expression:
    """``parse_program``, which reads the same program several times in an audit."""
    return parse_program(code)


def _chain(expression: Expression) -> tuple[Chain, ...]:
    """The operations of a chain, outermost first, with parameters shown and, as in frozen runs, hidden."""
    operations: list[Operation] = []
    while isinstance(expression, Apply):
        function = ALIASES.get(expression.operator)
        if function is None:
            return ()
        parameter, inner = expression.parameter, expression.arguments
        if function.binary and isinstance(inner[1], Text):
            parameter = inner[1].text
        operations.append(Operation(function, parameter))
        expression = inner[0]
    return tuple(operations), tuple(Operation(each.function, each.parameter, frozen=True) for each in operations)
