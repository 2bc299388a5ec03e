r"""Judging answers of the Countdown task; what is accepted and what is refused, and why, is in README.md beside this.

Text style: the last ``<answer>`` that is closed holds an expression, perhaps with ``= target`` behind it.
Compact style: the whole response is steps, one a line, ``REST,A*B=C``; REST is not read.

The numbers are checked before anything is computed, so the size of every value is bounded by the ground truth.
"""

from collections import Counter
from typing import NamedTuple

from compositionality.tasks.answers import last_answer
from compositionality.tasks.arithmetic import (
    MAX_LENGTH,
    SPACE,
    Token,
    apply,
    is_legal,
    plain_signs,
    to_postfix,
    tokenize,
    value_of,
    whole_number,
)
from compositionality.tasks.countdown.truth import Truth, read_ground_truth
from compositionality.types import Reason, Verdict

_NO_ANSWER = Verdict(0.0, Reason.NO_ANSWER)


class _ClaimedStep(NamedTuple):
    """One line of the compact style: an operation and the result that the answer claims."""

    left: int
    sign: str
    right: int
    claimed: int


def judge_countdown(response: str, ground_truth: str) -> Verdict:
    """Judge a response; never raises on what a model wrote, work bounded by the limits of the grammar."""
    truth = read_ground_truth(ground_truth)
    return _judge_compact(response, truth) if truth.style == "compact" else _judge_text(response, truth)


def _judge_text(response: str, truth: Truth) -> Verdict:
    answer = last_answer(response, SPACE)
    if not answer:
        return _NO_ANSWER
    if len(answer) > MAX_LENGTH:
        return _verdict(Reason.ILLEGAL, answer)
    expression, equals, claim = plain_signs(answer).partition("=")
    tokens = tokenize(expression)
    claim = claim.strip(SPACE)
    if tokens is None or not is_legal(tokens, truth.operators) or (equals and not _is_whole(claim)):
        return _verdict(Reason.ILLEGAL, answer)
    if not _are_given(tokens, truth):
        return _verdict(Reason.WRONG_NUMBERS, answer)
    if (equals and claim != str(truth.target)) or value_of(to_postfix(tokens)) != truth.target:
        return _verdict(Reason.WRONG_VALUE, answer)
    return _verdict(Reason.CORRECT, answer)


def _is_whole(claim: str) -> bool:
    return whole_number(claim.removeprefix("-")) is not None


def _are_given(tokens: list[Token], truth: Truth) -> bool:
    """True if the literals are the given numbers, each as often as given; a part of them with use "any"."""
    literals = [token for token in tokens if isinstance(token, int)]
    if truth.use == "any":
        return Counter(literals) <= Counter(truth.numbers)
    return tuple(sorted(literals)) == truth.numbers


def _judge_compact(response: str, truth: Truth) -> Verdict:
    if "=" not in response:
        return _NO_ANSWER
    if len(response) > MAX_LENGTH:
        return _verdict(Reason.ILLEGAL, response)
    values = list(truth.numbers)
    steps = [_read_step(line, truth.operators) for line in response.split("\n")]
    legal = [step for step in steps if step]
    reason = _follow(legal, values, truth) if len(legal) == len(steps) else Reason.ILLEGAL
    return _verdict(reason, response)


def _read_step(line: str, operators: str) -> _ClaimedStep | None:
    """The step behind the last comma of ``line``; None if it is not ``A*B=C`` in plain digits without a space."""
    _, comma, step = line.rpartition(",")
    operation, _, result = step.partition("=")
    sign = next((character for character in operation if character in operators), "")
    if not comma or not sign:
        return None
    left, _, right = operation.partition(sign)
    numbers = whole_number(left), whole_number(right), whole_number(result)
    if numbers[0] is None or numbers[1] is None or numbers[2] is None:
        return None
    return _ClaimedStep(numbers[0], sign, numbers[1], numbers[2])


def _follow(steps: list[_ClaimedStep], values: list[int], truth: Truth) -> Reason:
    """What is wrong first when the steps are carried out on the given values."""
    for step in steps:
        for operand in (step.left, step.right):
            if operand not in values:
                return Reason.WRONG_NUMBERS
            values.remove(operand)
        if apply(step.sign, step.left, step.right) != step.claimed:
            return Reason.WRONG_VALUE
        values.append(step.claimed)
    if truth.use == "all" and len(values) > 1:
        return Reason.WRONG_NUMBERS
    return Reason.CORRECT if values[-1] == truth.target else Reason.WRONG_VALUE


def _verdict(reason: Reason, answer: str) -> Verdict:
    return Verdict(float(reason is Reason.CORRECT), reason, answer[:MAX_LENGTH])
