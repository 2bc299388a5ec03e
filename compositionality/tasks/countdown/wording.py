"""Prompts and judges of Countdown: the text style (English), the compact style (tiny models).

What is accepted and what is refused, and why, is in README.md beside this. Text style: the last ``<answer>`` that is
closed holds an expression, perhaps with ``= target`` after it. Compact style: the whole response is steps, one a line,
``REST,A*B=C``; REST is not read.

The numbers are checked before anything is computed, so the size of every value is bounded by the ground truth.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from compositionality.errors import UserError
from compositionality.tasks.answers import last_answer
from compositionality.tasks.arithmetic import (
    MAX_DIGITS,
    MAX_LENGTH,
    SPACE,
    WHOLE,
    apply,
    parse,
    plain_signs,
    value_of,
    whole_number,
)
from compositionality.types import Reason, Verdict

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


# ---- ground truths and verdicts


MAX_NUMBERS = 16
STYLES, USES = ("text", "compact"), tuple(_USE)
_WHOLE = rf"0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}}"
_STEP = re.compile(rf".*,(?P<left>{_WHOLE})(?P<sign>[-+*/])(?P<right>{_WHOLE})=(?P<result>{_WHOLE})")
"""One line of the compact style; what stands before its last comma is not read."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Target, numbers in ascending order, and the rules: style, use ("all" or "any" numbers), allowed operators."""

    target: int
    numbers: tuple[int, ...]
    style: str = "text"
    use: str = "all"
    operators: str = OPERATORS


@lru_cache(maxsize=4096)
def read_ground_truth(ground_truth: str) -> Truth:
    """Return the rules in the JSON text of a row; UserError if it is damaged.

    Ours and TinyZero's hold ``target`` and ``numbers`` (columns of others ``nums``), the paper's ``answer`` and
    ``numbers``; an entry of reasoning-gym holds both under ``metadata``. A value of null is read as an absent one.
    """
    try:
        fields = json.loads(ground_truth)
    except (ValueError, RecursionError) as error:
        raise _damaged(ground_truth, "is no JSON text") from error
    fields = fields.get("metadata", fields) if isinstance(fields, dict) else None
    if not isinstance(fields, dict):
        raise _damaged(ground_truth, "is no object with target and numbers")
    present = {name: value for name, value in fields.items() if value is not None}
    target: Any = present.get("target", present.get("answer"))
    numbers: Any = present.get("numbers", present.get("nums"))
    rules = (present.get("style", STYLES[0]), present.get("use", "all"), present.get("operators", OPERATORS))
    if fault := _fault(target, numbers, *rules):
        raise _damaged(ground_truth, fault)
    return Truth(target, tuple(sorted(numbers)), *rules)


def _fault(target: Any, numbers: Any, style: Any, use: Any, operators: Any) -> str | None:
    if target is None:
        return "has no target"
    if not _is_whole(target):
        return f"has a target that is no whole number of up to {MAX_DIGITS} digits"
    if not isinstance(numbers, list):
        return "has no list of numbers"
    if not 1 <= len(numbers) <= MAX_NUMBERS:
        return f"has {len(numbers)} numbers; 1 to {MAX_NUMBERS} are judged"
    if not all(_is_whole(number) and number > 0 for number in numbers):
        return f"has numbers that are no positive whole numbers of up to {MAX_DIGITS} digits"
    if style not in STYLES or use not in USES:
        return "must have the style text or compact and use all or any"
    if not isinstance(operators, str) or not operators or not set(operators) <= set(OPERATORS):
        return f"must have operators out of {OPERATORS}"
    return None


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) < 10**MAX_DIGITS


def _damaged(ground_truth: str, fault: str) -> UserError:
    return UserError(f"ground_truth {ground_truth[:80]!r} {fault}; make the problem file again")


# ---- verdicts


def judge_countdown(answer_text: str, ground_truth: str) -> Verdict:
    """Judge a response; never raises on what a model wrote, work bounded by the limits of the grammar."""
    truth = read_ground_truth(ground_truth)
    return _judge_compact(answer_text, truth) if truth.style == "compact" else _judge_text(answer_text, truth)


def _judge_text(response: str, truth: Truth) -> Verdict:
    answer = last_answer(response, SPACE)
    if not answer:
        return Verdict(0.0, Reason.NO_ANSWER)
    if len(answer) > MAX_LENGTH:
        return _verdict(Reason.ILLEGAL, answer)
    expression, equals, claim = plain_signs(answer).partition("=")
    postfix = parse(expression, truth.operators)
    claim = claim.strip(SPACE)
    is_claim = not equals or whole_number(claim.removeprefix("-")) is not None
    if postfix is None or not is_claim:
        return _verdict(Reason.ILLEGAL, answer)
    literals = [token for token in postfix if isinstance(token, int)]
    is_any = truth.use == "any"
    if not (Counter(literals) <= Counter(truth.numbers) if is_any else tuple(sorted(literals)) == truth.numbers):
        return _verdict(Reason.WRONG_NUMBERS, answer)
    if (equals and claim != str(truth.target)) or value_of(postfix) != truth.target:
        return _verdict(Reason.WRONG_VALUE, answer)
    return _verdict(Reason.CORRECT, answer)


def _judge_compact(response: str, truth: Truth) -> Verdict:
    if "=" not in response:
        return Verdict(0.0, Reason.NO_ANSWER)
    lines = response.split("\n") if len(response) <= MAX_LENGTH else [""]
    steps = [_STEP.fullmatch(line) for line in lines]
    legal = [step for step in steps if step and step["sign"] in truth.operators]
    return _verdict(_follow(legal, truth) if len(legal) == len(steps) else Reason.ILLEGAL, response)


def _follow(steps: list[re.Match[str]], truth: Truth) -> Reason:
    """Return what is wrong first when the steps are carried out on the given numbers."""
    values = list(truth.numbers)
    for step in steps:
        left, right, result = int(step["left"]), int(step["right"]), int(step["result"])
        for operand in (left, right):
            if operand not in values:
                return Reason.WRONG_NUMBERS
            values.remove(operand)
        if apply(step["sign"], left, right) != result:
            return Reason.WRONG_VALUE
        values.append(result)
    if truth.use == "all" and len(values) > 1:
        return Reason.WRONG_NUMBERS
    return Reason.CORRECT if values[-1] == truth.target else Reason.WRONG_VALUE


def _verdict(reason: Reason, answer: str) -> Verdict:
    return Verdict(float(reason is Reason.CORRECT), reason, answer[:MAX_LENGTH])
