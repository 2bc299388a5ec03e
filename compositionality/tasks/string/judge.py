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
from dataclasses import dataclass
from functools import lru_cache

from compositionality.errors import UserError
from compositionality.types import Reason, Verdict

_SPACE = r"[ \t\r\n]*+"
_STRING = r'"[^"\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*+)*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_LITERAL = r"(?:true|false|null|True|False|None)\b"

_START = re.compile(rf"\{{(?={_SPACE}{_STRING}{_SPACE}:)")
_FLAT = re.compile(rf'\{{{_SPACE}"output"{_SPACE}:{_SPACE}({_STRING}){_SPACE}\}}')
_KEY = re.compile(rf"{_SPACE}({_STRING}){_SPACE}:")
_SCALAR = re.compile(rf"{_SPACE}({_STRING}|{_NUMBER}|{_LITERAL})")
_OPEN = re.compile(rf"{_SPACE}([\[{{])")
_AFTER_VALUE = re.compile(rf"{_SPACE}([,\]}}])")
_NOT_IN_STRINGS = re.compile(r"[:,;\s]")
_NO_ANSWER = Verdict(0.0, Reason.NO_ANSWER)
_MALFORMED = Verdict(0.0, Reason.MALFORMED)


def judge_string(response: str, ground_truth: str) -> Verdict:
    """Judge a response of the string task; linear in its length, never raises on what a model wrote."""
    gold, style = read_ground_truth(ground_truth)
    return _judge_compact(response, gold) if style == "compact" else _judge_json(response, gold)


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


@dataclass(slots=True)
class _Open:
    """An object or a list that is still open; ``output`` is the text of its last value of this key."""

    start: int
    closing: str
    key: str = ""
    has_value: bool = False
    output: str | None = None

    def take(self, value: str) -> None:
        """Note that a value has been read: the text of a scalar, or a brace for anything larger."""
        self.has_value = True
        if self.key == '"output"':
            self.output = value


def last_output(text: str) -> str | None:
    """Return the JSON text of the value of ``output`` in the last object that has this key, or None.

    An object inside a well-formed one does not count; one inside a list does. An object that starts inside a failed
    attempt is either one that the attempt met as a value (then its fate is already known) or one that it took for the
    inside of a string. So every brace is parsed at most once, and every character is read by at most two attempts.
    """
    objects: dict[int, tuple[int, str | None]] = {}  # by opening brace: where the object ends (-1: nowhere), its output
    output, position = None, 0
    while start := _START.search(text, position):
        brace = start.start()
        flat = None if brace in objects else _FLAT.match(text, brace)
        if flat:
            output, position = flat[1], flat.end()
            continue
        if brace not in objects:
            _read_object(text, brace, objects)
        end, value = objects[brace]
        output = value or output
        position = end if end >= 0 else brace + 1
    return output


def _read_object(text: str, brace: int, objects: dict[int, tuple[int, str | None]]) -> None:
    """Add the object at ``brace`` to ``objects``, and all those read on the way; no recursion."""
    stack = [_Open(brace, "}")]
    position = brace + 1
    while stack:
        top = stack[-1]
        mark = _AFTER_VALUE.match(text, position)
        if mark and mark[1] == top.closing:
            position = mark.end()
            stack.pop()
            if top.closing == "}":
                objects[top.start] = position, top.output
            if stack:
                stack[-1].take("{")
            continue
        comma = mark if mark and mark[1] == "," else None
        if bool(comma) != top.has_value:
            break
        position = comma.end() if comma else position
        if top.closing == "}":
            key = _KEY.match(text, position)
            if not key:
                break
            top.key, position = _plain_key(key[1]), key.end()
        if scalar := _SCALAR.match(text, position):
            top.take(scalar[1])
            position = scalar.end()
            continue
        opening = _OPEN.match(text, position)
        if not opening:
            break
        start = opening.start(1)
        if start not in objects:
            stack.append(_Open(start, "}" if opening[1] == "{" else "]"))
            position = opening.end()
        elif objects[start][0] < 0:
            break
        else:
            top.take("{")
            position = objects[start][0]
    objects.update((top.start, (-1, None)) for top in stack if top.closing == "}")


def _plain_key(token: str) -> str:
    r"""Return a key as it stands; one written with ``\u`` escapes is decoded, so that it cannot hide."""
    if "\\" not in token or len(token) > 64:
        return token
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), token)
