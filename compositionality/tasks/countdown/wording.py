"""How a Countdown problem is put to a model: the text style (English) and the compact style (tiny models)."""

from collections.abc import Sequence
from typing import NamedTuple

from compositionality.tasks.arithmetic import WHOLE

OPERATORS = "+-*/"

_TASK = """Countdown: reach {target}.

Numbers: {numbers}
Allowed: {operators} and parentheses

Write one arithmetic expression whose value is exactly {target}. {use}
Work it out step by step. Then give the finished expression, and nothing else, between an opening <answer> tag and its
closing tag."""

_USE = {
    "all": "It must contain every number as often as it is listed, and no other number.",
    "any": "It may leave numbers out, but contains none more often than it is listed, and no other number.",
}


class Calculation(NamedTuple):
    """One operation on two whole values that are still there; its result must be whole."""

    left: int
    operator: str
    right: int

    @property
    def result(self) -> int:
        return self.left // self.right if self.operator == "/" else int(WHOLE[self.operator](self.left, self.right))


def text_prompt(numbers: Sequence[int], target: int, operators: str = OPERATORS, use: str = "all") -> str:
    """Return the text style's prompt. It has no closing tag, so echoing it is not an answer."""
    given, allowed = ", ".join(map(str, numbers)), ", ".join(operators)
    return _TASK.format(target=target, numbers=given, operators=allowed, use=_USE[use])


def text_answer(expression: str) -> str:
    return f"<answer>{expression}</answer>"


def short_name(numbers: Sequence[int], target: int) -> str:
    """Return a problem in short: ``3|5|7>22``."""
    return f"{'|'.join(map(str, numbers))}>{target}"


def compact_prompt(numbers: Sequence[int], target: int, operators: str = OPERATORS) -> str:
    """Return the compact style's prompt: the operators allowed, then the problem, ``+-*/:3|5|7>22``."""
    return f"{operators}:{short_name(numbers, target)}"


def compact_line(rest: Sequence[int], a: int, operator: str, b: int, c: int) -> str:
    """Return one step of the compact style: the values still there besides ``a`` and ``b``, then the operation."""
    return f"{'|'.join(map(str, rest))},{a}{operator}{b}={c}"


def compact_trace(numbers: Sequence[int], steps: Sequence[Calculation]) -> str:
    """Return the gold response of the compact style: a line per step; results join the end of the row of values."""
    values, lines = list(numbers), []
    for step in steps:
        values.remove(step.left)
        values.remove(step.right)
        lines.append(compact_line(values, step.left, step.operator, step.right, step.result))
        values.append(step.result)
    return "\n".join(lines)


def ground_truth(
    numbers: Sequence[int], target: int, style: str = "text", use: str = "all", operators: str = OPERATORS
) -> str:
    """Return the JSON text that the judge reads: target and numbers, and what differs from text, all and ``+-*/``."""
    rules = ("" if style == "text" else f', "style": "{style}"') + ("" if use == "all" else f', "use": "{use}"')
    rules += "" if operators == OPERATORS else f', "operators": "{operators}"'
    return f'{{"target": {target}, "numbers": [{", ".join(map(str, numbers))}]{rules}}}'
