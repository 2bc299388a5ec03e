r"""Finding the answer in a response, and reading it as data.

``<answer>``, ``\boxed{}``, a last line ``Answer: …``, programs in fenced blocks, JSON objects; literals of JSON and
Python. Everything here is linear in the length of the text, or reads a part of bounded length; it runs nothing of it
and never raises on it.
"""

import ast
import json
import re
import warnings
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

OPEN, CLOSE = "<answer>", "</answer>"
THOUGHT_START, THOUGHT_END = "<think>", "</think>"
MAX_LITERAL, MAX_DEPTH, MAX_STYLES = 20_000, 16, 3
UNREADABLE = object()  # what is returned for text that is no literal

_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BOX_PART = re.compile(_BOX.pattern + r"|\\.|[{}]", re.DOTALL)
_FENCE_OF_LITERAL = re.compile(r"```[a-zA-Z]*")
_NO_BLANK = re.compile(r"\S")
_STYLED = re.compile(
    r"\\(?:text(?:bf|rm|it|sf|tt|normal)?|math(?:rm|bf|it|sf|tt)|boldsymbol|bm|mbox|emph)\s*"
    r"\{((?:[^{}]|\{[^{}]*\})*)\}"
)
_SPACE_SIGN = re.compile(r"\\[,;:! ]|\\q?quad(?![a-zA-Z])|(?<=[\w})%&.])~")  # of LaTeX; ~12 is about 12
_BOLD = re.compile(r"(?<!\S)(\*{1,3})(?=[^\s*])([^*]+)\1")


def after_thought(response: str) -> str | None:
    """Return what follows the last ``</think>``, all of it without one; None if a thought is opened and never closed.

    The prompt may have opened the thought, so a response without either tag is all answer.
    """
    _, end, answer = response.rpartition(THOUGHT_END)
    if THOUGHT_START in answer:
        return None
    return answer.lstrip() if end else answer


def last_answer(response: str, space: str | None = None) -> str | None:
    """Return what the last ``<answer>`` that is closed holds, without ``space`` (any) around it, or None."""
    start, answer = last_between(response, OPEN, CLOSE)
    return answer.strip(space) if start >= 0 else None


def last_between(text: str, opening: str, closing: str) -> tuple[int, str]:
    """Return where the last ``opening`` with a ``closing`` after it begins, and what stands up to the first of these.

    (-1, "") if there is none.
    """
    start = text.rfind(opening, 0, max(text.rfind(closing), 0))
    if start < 0:
        return -1, ""
    content_start = start + len(opening)
    return start, text[content_start : text.find(closing, content_start)]


def last_box(response: str) -> str | None:
    r"""Return what the last ``\boxed{`` or ``\fbox{`` that is closed holds, as ``box_span`` finds it, or None."""
    start, end = box_span(response)
    return response[start:end].strip() if start >= 0 else None


def box_span(response: str) -> tuple[int, int]:
    r"""Return where the content of the last box that is closed begins and ends, by matching braces; (-1, -1): none.

    ``\{`` and ``\}`` are text, so they neither open nor close. A box in a box counts if that holds nothing else.
    """
    if not has_box(response):
        return -1, -1
    open_braces: list[tuple[int, int]] = []  # where a box and its content begin, -1 for any other brace
    box, start, end, closed = -1, -1, -1, -1
    for part in _BOX_PART.finditer(response):
        token = part[0]
        if token == "{":
            open_braces.append((-1, -1))
        elif token == "}":
            outer, opened = open_braces.pop() if open_braces else (-1, -1)
            if opened < 0:
                continue
            gaps = (opened, box), (closed, part.start())  # before the box in this one, and after it
            if opened > start or any(_NO_BLANK.search(response, *gap) for gap in gaps):
                start, end = opened, part.start()
            box, closed = outer, part.end()
        elif token.endswith("{") and len(token) > 2:
            open_braces.append((part.start(), part.end()))
    return start, end


def has_box(response: str) -> bool:
    return _BOX.search(response) is not None


def without_styles(text: str) -> str:
    r"""Return ``text`` with the content of ``\text{…}``, ``\mathrm{…}`` and their kin in place of them."""
    for _ in range(MAX_STYLES):
        text = _STYLED.sub(r"\1", text)
    return text.strip()


def with_plain_spaces(text: str) -> str:
    r"""Return ``text`` with one space for spaces of any width, ``\,`` and ``~`` too, and none for ``\!``."""
    return " ".join(_SPACE_SIGN.sub(lambda sign: "" if sign[0] == "\\!" else " ", text).split())


def answer_line(response: str, mark: re.Pattern[str]) -> str | None:
    """Return what stands after ``mark`` on the last line, which begins with it; None where it does not.

    Asterisks around bold print are not seen: ``**Answer:** 5``, ``Answer: **5**``, ``**Answer: 5**``.
    """
    line = _BOLD.sub(r"\2", response.rstrip().rpartition("\n")[2]).strip().lstrip("*")
    match = mark.match(line)
    return line[match.end() :].strip() if match else None


# ---- programs

_PYTHON = ("python", "python3", "py")
_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^`]*)")
_DEFINES = re.compile(r"^(?:async def|def|class)\b", re.MULTILINE)


class CodeBlock(NamedTuple):
    """A fenced block: the first word of its info string in lower case, its text, whether its fence is closed."""

    language: str
    text: str
    closed: bool


def last_program(response: str, called: bool = False) -> str | None:
    """Return the last block that is marked as Python, else the last without a mark.

    ``called``: by tests, so the last that defines something, if one does: an example of its use may follow. A block
    that is never closed counts where no other does.
    """
    blocks = [block for block in code_blocks(response) if block.text.strip()]
    for choice in (
        [block for block in blocks if block.closed and block.language in _PYTHON],
        [block for block in blocks if block.closed and not block.language],
        [block for block in blocks if block.language in _PYTHON],
    ):
        if choice:
            defining = [block for block in choice if called and _DEFINES.search(block.text)]
            return (defining or choice)[-1].text.strip("\r\n")
    return None


def code_blocks(text: str) -> list[CodeBlock]:
    """Return the fenced blocks of Markdown, without the indentation of their fences.

    As CommonMark has it: a closing fence has the sign of the opening one, is as long, and stands less than four columns
    further right, so a fence within a docstring is text. Unlike there, one with a mark opens a block within a block.
    """
    blocks: list[CodeBlock] = []
    opened: tuple[str, str, str] | None = None  # indentation, fence, language
    lines: list[str] = []
    for line in text.split("\n"):
        match = _FENCE.fullmatch(line.rstrip())
        indent, fence, info = match.groups() if match else ("", "", "")
        least, furthest = (opened[1], len(opened[0]) + 4) if opened else ("", len(line))
        if not fence or not fence.startswith(least) or len(indent) >= furthest:
            lines.append(line.removeprefix(opened[0]) if opened else line)
            continue
        if opened is not None and not info:
            blocks.append(CodeBlock(opened[2], "\n".join(lines), closed=True))
            opened = None
        else:
            opened = indent, fence, re.split(r"[^a-z0-9+#]", info.lower(), maxsplit=1)[0]
        lines = []
    if opened is not None:
        blocks.append(CodeBlock(opened[2], "\n".join(lines), closed=False))
    return blocks


# ---- JSON objects

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


def last_object(response: str) -> dict[str, Any] | None:
    """Return the last well-formed JSON object without repeated keys, fenced or not; none inside another counts.

    It is looked for in the last MAX_LITERAL characters.
    """
    text = response[-MAX_LITERAL:]
    fields, position, decoder = None, 0, json.JSONDecoder(object_pairs_hook=with_distinct_keys)
    while start := _OBJECT.search(text, position):
        try:
            fields, position = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position = start.start() + 1
    return fields


def last_value(text: str, key: str) -> str | None:
    """Return the JSON text of the value in the last object that has ``key``, or None; ``{`` for an object or a list.

    An object inside a well-formed one does not count; one inside a list does. Of a repeated key the last counts; a raw
    line break inside a string is part of it; Python's True, False and None are read like their JSON forms. Objects and
    lists are read from the last one back, so those inside are known already: each is read once, and every character by
    at most two of them (once as part of a string, once as none).
    """
    values: dict[int, tuple[int, str | None]] = {}  # by opening bracket: where it ends (only if well-formed), its value
    begin = _OBJECT.search(text)
    brackets = [match.start() for match in _BRACKET.finditer(text, begin.start())] if begin else []
    for bracket in reversed(brackets):
        if result := _read_bracket(text, bracket, key, values):
            values[bracket] = result
    last, position = None, 0
    for bracket in sorted(values):
        if bracket >= position and text[bracket] == "{":
            position, value = values[bracket]
            last = value or last
    return last


def _read_bracket(
    text: str, start: int, wanted: str, known: dict[int, tuple[int, str | None]]
) -> tuple[int, str | None] | None:
    """Return where the object or list at ``start`` ends, and its value of ``wanted``; None if it is not well-formed.

    ``known``: what this is of all brackets further on.
    """
    if empty := _EMPTY.match(text, start):
        return empty.end(), None
    value, position = None, start + 1
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
        if key and _plain_key(key[1]) == f'"{wanted}"':
            value = scalar[1] if scalar else "{"
        mark = _AFTER_VALUE.match(text, position)
        if not mark:
            return None
        position = mark.end()
        if mark[1] != ",":
            return (position, value) if _PAIRS[text[start]] == mark[1] else None


def _plain_key(token: str) -> str:
    r"""Return a key as it stands; one written with ``\u`` escapes is decoded, so that it cannot hide."""
    if "\\" not in token or len(token) > 64:
        return token
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), token)


# ---- literals


def read_json(text: str) -> Any:
    """Return the value of JSON text; ``UNREADABLE`` if it is none, or is nested too deep."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return UNREADABLE


def read_literal(text: str) -> Any:
    """Return the value of JSON or of a Python literal, perhaps in one code fence; ``UNREADABLE`` if it is neither.

    Text over MAX_LITERAL characters, with brackets over MAX_DEPTH deep, a repeated key or a comment is not read.
    """
    text = text.strip()
    opening, _, lines = text.partition("\n")
    body, _, closing = lines.rpartition("\n")
    if _FENCE_OF_LITERAL.fullmatch(opening) and closing.strip() == "```":
        text = body.strip()
    if len(text) > MAX_LITERAL or max(depths(text)) > MAX_DEPTH:
        return UNREADABLE
    try:
        return json.loads(text, object_pairs_hook=with_distinct_keys)
    except RepeatedKeyError:
        return UNREADABLE
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = literal_value(ast.parse(text, mode="eval"))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return UNREADABLE
    return UNREADABLE if text.count("#") > repr(value).count("#") else value


def literal_value(node: ast.expr | ast.Expression) -> Any:
    """Return what ``ast.literal_eval`` does; RepeatedKeyError if an object in it gives a key twice."""
    value = ast.literal_eval(node)
    objects = (inner for inner in ast.walk(node) if isinstance(inner, ast.Dict))
    if any(len(ast.literal_eval(inner)) < len(inner.keys) for inner in objects):
        raise RepeatedKeyError
    return value


class RepeatedKeyError(ValueError):
    """An object gives a key twice, so two answers."""


def with_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs, for ``json``. Raise RepeatedKeyError if it gives a key twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise RepeatedKeyError
    return fields


def depths(signs: Iterable[str]) -> list[int]:
    """Return how many brackets are open at first (none), and after each of ``signs``, those inside quotes too."""
    return list(accumulate(((sign in "([{") - (sign in ")]}") for sign in signs), initial=0))
