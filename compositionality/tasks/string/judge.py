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
from dataclasses import dataclass, field
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
_FAILED = -1
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
    value = ObjectScanner(response).last_output()
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
class _Frame:
    """An object or a list that is still open."""

    start: int
    is_object: bool
    key: str = ""
    output: str | None = None
    has_value: bool = False

    def take(self, value: str) -> None:
        """Note that a value has been read: the text of a scalar, or the opening bracket of anything larger."""
        self.has_value = True
        if self.is_object and self.key == '"output"':
            self.output = value


@dataclass(slots=True)
class ObjectScanner:
    """Well-formed objects of ``text``: one pass, linear in the text, no recursion.

    ``ends[brace]`` is where one ends, or -1 if it is none. An object that starts inside a failed attempt is either one
    that the attempt met as a value (then its fate is already known) or one that it took for the inside of a string. So
    every brace is parsed at most once, and every character is read by at most two attempts.
    """

    text: str
    ends: dict[int, int] = field(default_factory=dict)
    outputs: dict[int, str | None] = field(default_factory=dict)

    def last_output(self) -> str | None:
        """Return the JSON text of the value of ``output`` in the last object that has this key, or None.

        An object inside a well-formed one does not count; one inside a list does.
        """
        output, position = None, 0
        while start := _START.search(self.text, position):
            brace = start.start()
            flat = None if brace in self.ends else _FLAT.match(self.text, brace)
            if flat:
                output, position = flat[1], flat.end()
                continue
            if brace not in self.ends:
                self._parse(brace)
            if self.ends[brace] == _FAILED:
                position = brace + 1
                continue
            output = self.outputs[brace] or output
            position = self.ends[brace]
        return output

    def _parse(self, brace: int) -> None:
        frames = [_Frame(brace, True)]
        position = brace + 1
        while frames:
            position = self._step(frames, position)
            if position == _FAILED:
                self.ends.update((frame.start, _FAILED) for frame in frames if frame.is_object)
                return

    def _step(self, frames: list[_Frame], position: int) -> int:
        """Read one member or one closing bracket of the innermost frame; the next position, or -1."""
        frame = frames[-1]
        after = _AFTER_VALUE.match(self.text, position)
        if after and after[1] != ",":
            return self._close(frames, after)
        if frame.has_value:
            if not after:
                return _FAILED
            position = after.end()
        elif after:
            return _FAILED
        if frame.is_object:
            key = _KEY.match(self.text, position)
            if not key:
                return _FAILED
            frame.key, position = _plain_key(key[1]), key.end()
        return self._value(frames, position)

    def _value(self, frames: list[_Frame], position: int) -> int:
        if scalar := _SCALAR.match(self.text, position):
            frames[-1].take(scalar[1])
            return scalar.end()
        opening = _OPEN.match(self.text, position)
        if not opening:
            return _FAILED
        start = opening.start(1)
        if start in self.ends:
            frames[-1].take("{")
            return self.ends[start]
        frames.append(_Frame(start, opening[1] == "{"))
        return opening.end()

    def _close(self, frames: list[_Frame], bracket: re.Match[str]) -> int:
        frame = frames[-1]
        if (bracket[1] == "}") != frame.is_object:
            return _FAILED
        frames.pop()
        if frame.is_object:
            self.ends[frame.start] = bracket.end()
            self.outputs[frame.start] = frame.output
        if frames:
            frames[-1].take("{")
        return bracket.end()


def _plain_key(token: str) -> str:
    r"""Return a key as it stands; one written with ``\u`` escapes is decoded, so that it cannot hide."""
    if "\\" not in token or len(token) > 64:
        return token
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), token)
