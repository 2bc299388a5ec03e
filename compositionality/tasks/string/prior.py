"""Simple functions that small models are pretrained on: their stand-in for a language model's general ability.

The first 34 are those of the tiny profile; larger models get more of them. None behaves like one of the 25 functions
of the study, whatever its parameter.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, zip_longest

from compositionality.errors import UserError
from compositionality.tasks.string.functions import Function, Parameter

Edit = Callable[[str], str]
Named = tuple[str, Edit]

_PLAIN: tuple[Named, ...] = (
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

_MORE_PLAIN: tuple[Named, ...] = (
    ("swap_pairs", lambda text: "".join([text[i : i + 2][::-1] for i in range(0, len(text), 2)])),
    ("swap_halves", lambda text: text[len(text) // 2 :] + text[: len(text) // 2]),
    ("reverse_first_half", lambda text: text[: len(text) // 2][::-1] + text[len(text) // 2 :]),
    ("reverse_last_half", lambda text: text[: len(text) // 2] + text[len(text) // 2 :][::-1]),
    ("reverse_middle", lambda text: text[:1] + text[1:-1][::-1] + text[1:][-1:]),
    ("keep_every_second", lambda text: text[::2]),
    ("drop_every_third", lambda text: "".join([char for i, char in enumerate(text) if i % 3 != 2])),
    ("keep_first_half", lambda text: text[: (len(text) + 1) // 2]),
    ("keep_last_half", lambda text: text[len(text) // 2 :]),
    ("drop_middle", lambda text: text[: len(text) // 2] + text[len(text) // 2 + 1 :]),
    ("double_middle", lambda text: text[: len(text) // 2 + 1] + text[len(text) // 2 :]),
    ("capital_first", lambda text: text[:1].upper() + text[1:]),
    ("capital_last", lambda text: text[:-1] + text[-1:].upper()),
    ("capital_first_half", lambda text: text[: len(text) // 2].upper() + text[len(text) // 2 :]),
    ("capital_last_half", lambda text: text[: len(text) // 2] + text[len(text) // 2 :].upper()),
    ("capital_middle", lambda text: text[:1] + text[1:-1].upper() + text[1:][-1:]),
    ("swap_case", str.swapcase),
    ("capital_vowels", lambda text: "".join([char.upper() if char in "aeiou" else char for char in text])),
    ("capital_consonants", lambda text: "".join([char if char in "aeiou" else char.upper() for char in text])),
    ("copy_first_to_end", lambda text: text + text[:1]),
    ("copy_last_to_start", lambda text: text[-1:] + text),
    ("copy_two_to_end", lambda text: text + text[:2]),
    ("copy_two_to_start", lambda text: text[-2:] + text),
    ("first_becomes_last", lambda text: text[-1:] + text[1:]),
    ("last_becomes_first", lambda text: text[:-1] + text[:1]),
    ("capitals_to_end", lambda text: "".join(sorted(text, key=str.isupper))),
    ("vowels_to_end", lambda text: "".join(sorted(text, key=lambda char: char in "aeiouAEIOU"))),
    ("append_length", lambda text: text + str(len(text) % 10)),
    ("prepend_length", lambda text: str(len(text) % 10) + text),
    ("bracket_whole", lambda text: f"«{text}»"),
    ("double_first_half", lambda text: text[: len(text) // 2] + text),
    ("double_last_half", lambda text: text + text[len(text) // 2 :]),
)


def _append(char: str) -> Edit:
    return lambda text: text + char


def _prepend(char: str) -> Edit:
    return lambda text: char + text


def _remove(char: str) -> Edit:
    return lambda text: text.replace(char, "")


def _replace(old: str, new: str) -> Edit:
    return lambda text: text.replace(old, new)


def _exchange(one: str, other: str) -> Edit:
    return lambda text: text.translate(str.maketrans(one + other, other + one))


def _insert(piece: str, at: int = 1) -> Edit:
    return lambda text: text[:at] + piece + text[at:]


def _insert_before_last(piece: str) -> Edit:
    return lambda text: text[:-1] + piece + text[-1:]


def _surround(piece: str) -> Edit:
    return lambda text: piece + text + piece


def _first_is(char: str) -> Edit:
    return lambda text: char + text[1:]


def _last_is(char: str) -> Edit:
    return lambda text: text[:-1] + char


def _edits() -> Iterable[Named]:
    """Yield the prior functions of the tiny profile, in an order that must never change."""
    yield from _PLAIN
    yield from ((f"append_{char}", _append(char)) for char in "acdgj")
    yield from ((f"prepend_{char}", _prepend(char)) for char in "befhi")
    yield from ((f"remove_{char}", _remove(char)) for char in "bdh")
    yield from ((f"replace_{old}_by_{new}", _replace(old, new)) for old, new in ("af", "cg", "ib", "jd"))
    yield from ((f"insert_{char}", _insert(char)) for char in "ceh")


_REPLACED = "be dk ek fg lh mk nl om pn zo qp cr st ti uy"
_EXCHANGED = "ab cd ef gh ij kl mn op qr st uv wx ae"
_INSERTED = "af bg ch di ej kp lqm rns otu zvy wab xec tgh"
_COUNTS = (2, 3, 4)
_SIGNS = ("-", "_", "|")
_FREE: tuple[tuple[str, Callable[..., str], tuple[Parameter, ...], Parameter], ...] = (
    ("surround_by", lambda text, other: other + text + other, (), "ea"),
    ("put_after_first", lambda text, other: text[:1] + other + text[1:], (), "ig"),
    ("put_before_last", lambda text, other: text[:-1] + other + text[-1:], (), "fc"),
    ("put_in_middle", lambda text, other: text[: len(text) // 2] + other + text[len(text) // 2 :], (), "bj"),
    ("first_becomes", lambda text, other: other + text[1:], (), "hd"),
    ("last_becomes", lambda text, other: text[:-1] + other, (), "ce"),
    ("middle_becomes", lambda text, other: text[:1] + other + text[1:][-1:], (), "gi"),
    ("keep_first", lambda text, count: text[:count], (2, 4, 5), 4),
    ("keep_last", lambda text, count: text[-count:], (2, 4, 5), 4),
    ("cut_first", lambda text, count: text[count:], _COUNTS, 2),
    ("cut_last", lambda text, count: text[:-count], _COUNTS, 2),
    ("turn_right", lambda text, count: _turned_right(text, count), _COUNTS, 2),
    ("reverse_first", lambda text, count: text[:count][::-1] + text[count:], (3, 4, 5), 3),
    ("reverse_last", lambda text, count: text[:-count] + text[-count:][::-1], (3, 4, 5), 3),
    ("drop_at", lambda text, place: text[: place - 1] + text[place:], _COUNTS, 2),
    ("double_at", lambda text, place: text[:place] + text[place - 1 :], _COUNTS, 2),
    ("grow_first", lambda text, count: text[:1] * count + text, _COUNTS, 3),
    ("grow_last", lambda text, count: text + text[-1:] * count, _COUNTS, 3),
    ("sign_after_first", lambda text, sign: text[:1] + sign + text[1:], _SIGNS, "-"),
    ("sign_before_last", lambda text, sign: text[:-1] + sign + text[-1:], _SIGNS, "-"),
)


def _turned_right(text: str, count: int) -> str:
    cut = len(text) - count % len(text) if text else 0
    return text[cut:] + text[:cut]


def _free_functions(first: int) -> Iterator[Function]:
    """Yield functions that take a parameter, numbered from ``first``: what brackets mean must be known before RL."""
    for number, (name, run, choices, frozen) in enumerate(_FREE, first):
        yield Function(number, name, run, choices, takes_text=not choices, frozen=frozen)


def _families() -> Iterator[Iterator[Named]]:
    """Yield families of edits of one kind, each with its letters."""
    yield from (iter(_MORE_PLAIN[start::3]) for start in range(3))
    yield ((f"append_{char}", _append(char)) for char in "efhiklmnopqrstu")
    yield ((f"prepend_{char}", _prepend(char)) for char in "acdgjklmnpqrtuv")
    yield ((f"remove_{char}", _remove(char)) for char in "acefgijklmnopqr")
    yield ((f"replace_{old}_by_{new}", _replace(old, new)) for old, new in map(tuple, _REPLACED.split()))
    yield ((f"exchange_{one}_{other}", _exchange(one, other)) for one, other in map(tuple, _EXCHANGED.split()))
    yield ((f"insert_{piece}_third", _insert(piece, 2)) for piece in _INSERTED.split())
    yield ((f"insert_{char}_before_last", _insert_before_last(char)) for char in "acefhlmostuw")
    yield ((f"surround_{char}", _surround(char)) for char in "adehimorsx")
    yield ((f"first_{char}", _first_is(char)) for char in "bcegkntv")
    yield ((f"last_{char}", _last_is(char)) for char in "afhjlpuz")


def _numbered() -> tuple[Function, ...]:
    """Return all of them: the tiny profile's, those with a parameter, then one of each family in turn."""
    functions = [Function(id, name, edit) for id, (name, edit) in enumerate(_edits(), FIRST_ID)]
    functions += _free_functions(FIRST_ID + len(functions))
    rest = filter(None, chain.from_iterable(zip_longest(*_families())))
    functions += [Function(id, name, edit) for id, (name, edit) in enumerate(rest, FIRST_ID + len(functions))]
    return tuple(functions)


FIRST_ID = 30
TINY_COUNT = 34
_ALL = _numbered()
PRIOR: dict[int, Function] = {function.id: function for function in _ALL[:TINY_COUNT]}
"""The prior functions of the tiny profile."""


def prior_functions(count: int = TINY_COUNT) -> tuple[Function, ...]:
    """Return the first ``count`` prior functions; the first 34 are the tiny profile's."""
    if not 1 <= count <= len(_ALL):
        raise UserError(f"prior_functions={count}: there are {len(_ALL)}; give a number from 1 to {len(_ALL)}")
    return _ALL[:count]
