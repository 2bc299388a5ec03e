r"""Judging answers of the Countdown task; what is accepted and what is refused, and why, is in README.md beside this.

Text style: the last ``<answer>`` that is closed holds an expression, perhaps with ``= target`` after it.
Compact style: the whole response is steps, one a line, ``REST,A*B=C``; REST is not read.

The numbers are checked before anything is computed, so the size of every value is bounded by the ground truth.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.answers import last_answer
from compositionality.tasks.arithmetic import (
    MAX_DIGITS,
    MAX_LENGTH,
    SPACE,
    apply,
    parse,
    plain_signs,
    value_of,
    whole_number,
)
from compositionality.tasks.countdown.wording import OPERATORS
from compositionality.types import Reason, Verdict

MAX_NUMBERS = 16
STYLES = ("text", "compact")
USES = ("all", "any")
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
    rules = (present.get("style", STYLES[0]), present.get("use", USES[0]), present.get("operators", OPERATORS))
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
