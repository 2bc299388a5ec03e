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
from compositionality.types import Reason, Verdict

_SPACE = r"[ \t\r\n]*+"
_STRING = r'"[^"\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*+)*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_LITERAL = r"(?:true|false|null|True|False|None)\b"

_PAIRS = {"{": "}", "[": "]"}
_OBJECT = re.compile(rf'\{{{_SPACE}"')
_BRACKET = re.compile(r"[\[{]")
_EMPTY = re.compile(rf"\{{{_SPACE}\}}|\[{_SPACE}\]")
_KEY = re.compile(rf"{_SPACE}({_STRING}){_SPACE}:")
_SCALAR = re.compile(rf"{_SPACE}({_STRING}|{_NUMBER}|{_LITERAL})")
_OPEN = re.compile(rf"{_SPACE}([\[{{])")
_AFTER_VALUE = re.compile(rf"{_SPACE}([,\]}}])")
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
    value = last_output(response)
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


# ---- objects in what a model wrote


def last_output(text: str) -> str | None:
    """Return the JSON text of the value of ``output`` in the last object that has this key, or None.

    An object inside a well-formed one does not count; one inside a list does. Objects and lists are read from the last
    one back, so those inside are known already: each is read once, and every character by at most two of them (once as
    part of a string, once as none).
    """
    known: dict[int, tuple[int, str | None]] = {}  # by opening bracket: where it ends (only if well-formed), its output
    begin = _OBJECT.search(text)
    brackets = [match.start() for match in _BRACKET.finditer(text, begin.start())] if begin else []
    for bracket in reversed(brackets):
        if result := _read_bracket(text, bracket, known):
            known[bracket] = result
    output, position = None, 0
    for bracket in sorted(known):
        if bracket >= position and text[bracket] == "{":
            position, value = known[bracket]
            output = value or output
    return output


def _read_bracket(text: str, start: int, known: dict[int, tuple[int, str | None]]) -> tuple[int, str | None] | None:
    """Return where the object or list that begins at ``start`` ends, and its ``output``; None if it is not well-formed.

    ``known``: what this is of all brackets further on.
    """
    if empty := _EMPTY.match(text, start):
        return empty.end(), None
    output, position = None, start + 1
    while True:
        key = _KEY.match(text, position) if text[start] == "{" else None
        if key:
            position = key.end()
        elif text[start] == "{":
            return None
        scalar, opening = _SCALAR.match(text, position), _OPEN.match(text, position)
        if scalar:
            position = scalar.end()
        elif opening and opening.start(1) in known:
            position = known[opening.start(1)][0]
        else:
            return None
        if key and _plain_key(key[1]) == '"output"':
            output = scalar[1] if scalar else "{"
        mark = _AFTER_VALUE.match(text, position)
        if not mark:
            return None
        position = mark.end()
        if mark[1] != ",":
            return (position, output) if _PAIRS[text[start]] == mark[1] else None


def _plain_key(token: str) -> str:
    r"""Return a key as it stands; one written with ``\u`` escapes is decoded, so that it cannot hide."""
    if "\\" not in token or len(token) > 64:
        return token
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), token)
