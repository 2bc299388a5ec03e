"""Finding JSON objects in what a model wrote: one pass, linear in the text, no recursion.

An object that starts inside a failed attempt is either one that the attempt met as a value (then its fate is
already known) or one that the attempt took for the inside of a string. So every brace is parsed at most once, and
every character is read by at most two attempts.
"""

import re
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class _Frame:
    """An object or a list that is still open."""

    start: int
    is_object: bool
    key: str = ""
    output: str | None = None
    has_value: bool = False

    def take(self, value: str) -> None:
        """A value has been read: the text of a scalar, or the opening bracket of anything larger."""
        self.has_value = True
        if self.is_object and self.key == '"output"':
            self.output = value


@dataclass(slots=True)
class ObjectScanner:
    """Well-formed objects of ``text``; ``ends[brace]`` is where one ends, or -1 if it is none."""

    text: str
    ends: dict[int, int] = field(default_factory=dict)
    outputs: dict[int, str | None] = field(default_factory=dict)

    def last_output(self) -> str | None:
        """JSON text of the value of ``output`` in the last object that has this key, or None.

        An object inside a well-formed one does not count; one inside a list does.
        """
        found, position = None, 0
        while start := _START.search(self.text, position):
            brace = start.start()
            flat = None if brace in self.ends else _FLAT.match(self.text, brace)
            if flat:
                found, position = flat[1], flat.end()
                continue
            if brace not in self.ends:
                self._parse(brace)
            if self.ends[brace] == _FAILED:
                position = brace + 1
                continue
            found = self.outputs[brace] or found
            position = self.ends[brace]
        return found

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
    r"""A key as it stands; one written with ``\u`` escapes is decoded, so that it cannot hide."""
    if "\\" not in token or len(token) > 64:
        return token
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), token)
