r"""Finding the answer in a response, and reading it as data: ``<answer>``, ``\boxed{}``, JSON and Python literals.

Everything here is linear in the length of the text, runs nothing of it, and never raises on it.
"""

import ast
import json
import re
import warnings
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

OPEN, CLOSE = "<answer>", "</answer>"
THOUGHT_START, THOUGHT_END = "<think>", "</think>"
MAX_LITERAL, MAX_DEPTH = 20_000, 16
UNREADABLE = object()  # what is returned for text that is no literal

_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BOX_PART = re.compile(_BOX.pattern + r"|\\.|[{}]", re.DOTALL)
_FENCE = re.compile(r"```[a-zA-Z]*")
_STYLED = re.compile(r"\\(?:text|textbf|textrm|textit|mathrm|mathbf|boldsymbol|mbox)\s*\{([^{}]*)\}")


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
    r"""Return what the last ``\boxed{`` or ``\fbox{`` that is closed holds, by matching braces, or None.

    ``\{`` and ``\}`` are text, so they neither open nor close. A box in a box counts if that holds nothing else.
    """
    if not has_box(response):
        return None
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
            if opened > start or response[opened:box].strip() or response[closed : part.start()].strip():
                start, end = opened, part.start()
            box, closed = outer, part.end()
        elif token.endswith("{") and len(token) > 2:
            open_braces.append((part.start(), part.end()))
    return response[start:end].strip() if start >= 0 else None


def has_box(response: str) -> bool:
    """Return whether a box is opened at all."""
    return _BOX.search(response) is not None


def without_styles(text: str) -> str:
    r"""Return ``text`` with the content of ``\text{…}``, ``\mathrm{…}`` and their kin in place of them."""
    return _STYLED.sub(r"\1", text).strip()


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
    text = _unfenced(text.strip())
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
            tree = ast.parse(text, mode="eval")
            value = ast.literal_eval(tree)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return UNREADABLE
    objects = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    has_twice = any(len(ast.literal_eval(node)) < len(node.keys) for node in objects)
    return UNREADABLE if has_twice or text.count("#") > repr(value).count("#") else value


class RepeatedKeyError(ValueError):
    """An object gives a key twice, so two answers."""


def with_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs, for ``json``. Raise RepeatedKeyError if it gives a key twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise RepeatedKeyError
    return fields


def _unfenced(text: str) -> str:
    """Return what stands in the one code fence that ``text`` is, or ``text``."""
    opening, _, lines = text.partition("\n")
    body, _, closing = lines.rpartition("\n")
    return body.strip() if _FENCE.fullmatch(opening) and closing.strip() == "```" else text


def depths(signs: Iterable[str]) -> list[int]:
    """Return how many brackets are open at first (none), and after each of ``signs``, those inside quotes too."""
    return list(accumulate(((sign in "([{") - (sign in ")]}") for sign in signs), initial=0))
