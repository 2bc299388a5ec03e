"""Simple functions that small models are pretrained on: their stand-in for a language model's general ability.

The first 34 are those of the tiny profile; larger models get more of them. None behaves like one of the 25 functions
of the study, whatever its parameter.
"""

from collections.abc import Callable
from functools import partial
from itertools import chain, zip_longest

from compositionality.errors import UserError
from compositionality.tasks.string.functions import Function, Parameter, rotate_str

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


_WITH_LETTERS: dict[str, Callable[[str, str], str]] = {
    "append_{}": lambda char, text: text + char,
    "prepend_{}": lambda char, text: char + text,
    "remove_{}": lambda char, text: text.replace(char, ""),
    "replace_{0[0]}_by_{0[1]}": lambda pair, text: text.replace(pair[0], pair[1]),
    "exchange_{0[0]}_{0[1]}": lambda pair, text: text.translate(str.maketrans(pair, pair[::-1])),
    "insert_{}": lambda char, text: text[:1] + char + text[1:],
    "insert_{}_third": lambda piece, text: text[:2] + piece + text[2:],
    "insert_{}_before_last": lambda char, text: text[:-1] + char + text[-1:],
    "surround_{}": lambda char, text: char + text + char,
    "first_{}": lambda char, text: char + text[1:],
    "last_{}": lambda char, text: text[:-1] + char,
}
"""Edits with letters, which their names hold: what is made of letters and text."""
_TINY = {
    "append_{}": "a c d g j",
    "prepend_{}": "b e f h i",
    "remove_{}": "b d h",
    "replace_{0[0]}_by_{0[1]}": "af cg ib jd",
    "insert_{}": "c e h",
}
"""Their letters in the tiny profile; the order must never change."""
_MORE = {
    "append_{}": "e f h i k l m n o p q r s t u",
    "prepend_{}": "a c d g j k l m n p q r t u v",
    "remove_{}": "a c e f g i j k l m n o p q r",
    "replace_{0[0]}_by_{0[1]}": "be dk ek fg lh mk nl om pn zo qp cr st ti uy",
    "exchange_{0[0]}_{0[1]}": "ab cd ef gh ij kl mn op qr st uv wx ae",
    "insert_{}_third": "af bg ch di ej kp lqm rns otu zvy wab xec tgh",
    "insert_{}_before_last": "a c e f h l m o s t u w",
    "surround_{}": "a d e h i m o r s x",
    "first_{}": "b c e g k n t v",
    "last_{}": "a f h j l p u z",
}
_COUNTS = (2, 3, 4)
_SIGNS = ("-", "_", "|")
# What a parameter in brackets means must be known before RL.
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
    ("turn_right", lambda text, count: rotate_str(text, -count), _COUNTS, 2),
    ("reverse_first", lambda text, count: text[:count][::-1] + text[count:], (3, 4, 5), 3),
    ("reverse_last", lambda text, count: text[:-count] + text[-count:][::-1], (3, 4, 5), 3),
    ("drop_at", lambda text, place: text[: place - 1] + text[place:], _COUNTS, 2),
    ("double_at", lambda text, place: text[:place] + text[place - 1 :], _COUNTS, 2),
    ("grow_first", lambda text, count: text[:1] * count + text, _COUNTS, 3),
    ("grow_last", lambda text, count: text + text[-1:] * count, _COUNTS, 3),
    ("sign_after_first", lambda text, sign: text[:1] + sign + text[1:], _SIGNS, "-"),
    ("sign_before_last", lambda text, sign: text[:-1] + sign + text[-1:], _SIGNS, "-"),
)


def _family(name: str, letters: str) -> list[Named]:
    return [(name.format(chosen), partial(_WITH_LETTERS[name], chosen)) for chosen in letters.split()]


def _numbered() -> tuple[Function, ...]:
    """Return all of them: the tiny profile's, those with a parameter, then one of each family in turn."""
    tiny = [*_PLAIN, *(edit for kind in _TINY.items() for edit in _family(*kind))]
    functions = [Function(id, name, edit) for id, (name, edit) in enumerate(tiny, FIRST_ID)]
    for id, (name, run, choices, frozen) in enumerate(_FREE, FIRST_ID + len(functions)):
        functions.append(Function(id, name, run, choices, takes_text=not choices, frozen=frozen))
    families = [*(_MORE_PLAIN[start::3] for start in range(3)), *(_family(*kind) for kind in _MORE.items())]
    rest = filter(None, chain.from_iterable(zip_longest(*families)))
    functions += [Function(id, name, edit) for id, (name, edit) in enumerate(rest, FIRST_ID + len(functions))]
    return tuple(functions)


FIRST_ID = 30
TINY_COUNT = 34
_ALL = _numbered()


def prior_functions(count: int = TINY_COUNT) -> tuple[Function, ...]:
    """Return the first ``count`` prior functions; the first 34 are the tiny profile's."""
    if not 1 <= count <= len(_ALL):
        raise UserError(f"prior_functions={count}: there are {len(_ALL)}; give a number from 1 to {len(_ALL)}")
    return _ALL[:count]
