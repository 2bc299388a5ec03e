"""Simple functions that tiny models are pretrained on: their stand-in for a language model's general ability.

None behaves like one of the 25 functions of the study.
"""

from collections.abc import Callable, Iterable

from compositionality.tasks.string.functions import Function

Edit = Callable[[str], str]

_PLAIN: tuple[tuple[str, Edit], ...] = (
    ("drop_first", lambda text: text[1:]),
    ("drop_last", lambda text: text[:-1]),
    ("double_first", lambda text: text[:1] + text),
    ("double_last", lambda text: text + text[-1:]),
    ("swap_first_two", lambda text: text[1:2] + text[:1] + text[2:]),
    ("swap_ends", lambda text: text[-1] + text[1:-1] + text[0] if len(text) > 1 else text),
    ("to_capitals", str.upper),
    ("to_small", str.lower),
    ("rotate_right", lambda text: text[-1:] + text[:-1]),
    ("keep_three", lambda text: text[:3]),
    ("last_three", lambda text: text[-3:]),
    ("double_ends", lambda text: text[:1] + text + text[-1:]),
    ("swap_last_two", lambda text: text[:-2] + text[-1:] + text[-2:-1] if len(text) > 1 else text),
    ("drop_ends", lambda text: text[1:-1]),
)


def _append(char: str) -> Edit:
    return lambda text: text + char


def _prepend(char: str) -> Edit:
    return lambda text: char + text


def _remove(char: str) -> Edit:
    return lambda text: text.replace(char, "")


def _replace(old: str, new: str) -> Edit:
    return lambda text: text.replace(old, new)


def _insert(char: str) -> Edit:
    return lambda text: text[:1] + char + text[1:]


def _edits() -> Iterable[tuple[str, Edit]]:
    yield from _PLAIN
    yield from ((f"append_{char}", _append(char)) for char in "acdgj")
    yield from ((f"prepend_{char}", _prepend(char)) for char in "befhi")
    yield from ((f"remove_{char}", _remove(char)) for char in "bdh")
    yield from ((f"replace_{old}_by_{new}", _replace(old, new)) for old, new in ("af", "cg", "ib", "jd"))
    yield from ((f"insert_{char}", _insert(char)) for char in "ceh")


FIRST_ID = 30
PRIOR: dict[int, Function] = {id: Function(id, name, edit) for id, (name, edit) in enumerate(_edits(), FIRST_ID)}
