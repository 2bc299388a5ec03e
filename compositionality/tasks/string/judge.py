r"""Judging answers of the string task.

JSON style: the last well-formed JSON object with the key ``output`` counts, wherever it stands; fences, prose,
unmatched braces and end-of-turn marks around it do not matter. The value must be a string equal to the gold one.
Decisions: extra keys are fine and of a repeated key the last counts; a raw line break inside the string is part of
it (hence wrong); a number, null, list or object as value is wrong; the Python words True, False and None are read
like their JSON forms; single quotes, trailing commas and ``\boxed{...}`` without an object are malformed; an object
inside another well-formed object does not count.

Compact style: the answer is the text after the last ``=``.

No answer at all is ``no_answer``; an attempt that cannot be read (there is a brace) is ``malformed``.
"""

import json
import re
from functools import lru_cache

from compositionality.errors import UserError
from compositionality.tasks.answers import last_value
from compositionality.types import Reason, Verdict

_NOT_IN_STRINGS = re.compile(r"[:,;\s]")
_NO_ANSWER = Verdict(0.0, Reason.NO_ANSWER)
_MALFORMED = Verdict(0.0, Reason.MALFORMED)


def judge_string(answer_text: str, ground_truth: str) -> Verdict:
    """Judge a response of the string task; linear in its length, never raises on what a model wrote."""
    gold, style = read_ground_truth(ground_truth)
    return _judge_compact(answer_text, gold) if style == "compact" else _judge_json(answer_text, gold)


@lru_cache(maxsize=4096)
def read_ground_truth(ground_truth: str) -> tuple[str, str]:
    """Return gold answer and style ("json" or "compact") in the JSON text of a row."""
    try:
        fields = json.loads(ground_truth)
        gold, style = fields["ref_output"], fields.get("style", "json")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"ground_truth {ground_truth[:60]!r} has no ref_output; make the problem file again") from error
    if not isinstance(gold, str) or style not in ("json", "compact"):
        raise UserError(f"ground_truth {ground_truth[:60]!r}: ref_output must be text, style json or compact")
    return gold, style


def _judge_json(response: str, gold: str) -> Verdict:
    if "{" not in response:
        return _NO_ANSWER
    value = last_value(response, "output")
    if value is None:
        return _MALFORMED
    if value[0] != '"':
        return Verdict(0.0, Reason.WRONG, value)
    return _compare(value[1:-1] if "\\" not in value else json.loads(value, strict=False), gold)


def _judge_compact(response: str, gold: str) -> Verdict:
    _, equals, answer = response.rpartition("=")
    if not equals:
        return _NO_ANSWER
    if not answer or _NOT_IN_STRINGS.search(answer):
        return _MALFORMED
    return _compare(answer, gold)


def _compare(answer: str, gold: str) -> Verdict:
    if answer == gold:
        return Verdict(1.0, Reason.CORRECT, answer)
    return Verdict(0.0, Reason.WRONG, answer)
