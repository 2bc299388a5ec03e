"""The 25 atomic functions, written out and as data: ids, names, parameters, splits, and what can be done with them.

The source of a function is the definition that Stage 1 shows. Parameters are always positional after the text. Names
are replaced by ``func_N`` before anybody sees them.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import count

from compositionality.errors import UserError

Parameter = int | str

REPEATS = (2, 3, 4)
ROTATIONS = (1, 2, 3)
SHIFTS = (1, 2, 3, 4, 5)
SEPARATORS = ("-", "_", "|")
DEPTHS = (1, 2, 3)
TEXT_LENGTHS = (2, 4)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """One atomic function; those below 0 are Python's own, which trees may hold.

    A parameter comes from ``choices``, or is a random text if ``takes_text``; with neither the function takes the
    text alone. ``binary``: the second argument may also be a sub-expression (trees). ``frozen`` is the parameter
    that stands for all in runs with frozen parameters.
    """

    id: int
    name: str
    run: Callable[..., str]
    choices: tuple[Parameter, ...] = ()
    takes_text: bool = False
    binary: bool = False
    frozen: Parameter | None = None

    @property
    def alias(self) -> str:
        """Return the name that prompts show: see ``alias_of``; Python's own keep theirs."""
        return alias_of(self.id) if self.id >= 0 else self.name

    @property
    def parametrised(self) -> bool:
        return bool(self.choices) or self.takes_text

    def source(self) -> str:
        """Return the Python source of the definition, under its alias and without type hints."""
        return definition(self.run, self.alias)


def alias_of(id: int) -> str:
    """Return ``func_N`` of the study's functions, ``other_N`` of the others that pretraining text is about."""
    return f"{'func' if id in ATOMS else 'other'}_{id}"


# ---- the functions


def deterministic_shuffle(text: str) -> str:
    """Visit the characters in strides: the smallest odd stride from 3 on that shares no factor with the length."""
    from math import gcd

    length = len(text)
    stride = 3
    while length and gcd(stride, length) != 1:
        stride += 2
    return "".join([text[i * stride % length] for i in range(length)])


def repeat_str(text: str, times: int) -> str:
    """Write the text several times in a row."""
    return text * times


def remove_vowels(text: str) -> str:
    """Leave out a, e, i, o and u, small or capital."""
    return "".join([char for char in text if char not in "aeiouAEIOU"])


def sort_chars(text: str) -> str:
    """Put the characters in ascending order."""
    return "".join(sorted(text))


def reverse_words(text: str) -> str:
    """Put the words in reverse order, with one space between them."""
    return " ".join(text.split()[::-1])


def add_prefix(text: str, prefix: str) -> str:
    """Put a prefix before the text."""
    return prefix + text


def add_suffix(text: str, suffix: str) -> str:
    """Put a suffix after the text."""
    return text + suffix


def interlace_str(text: str, other: str) -> str:
    """Take characters from both texts in turn; what is left of the longer one follows."""
    return "".join([text[i : i + 1] + other[i : i + 1] for i in range(max(len(text), len(other)))])


def rotate_str(text: str, count: int) -> str:
    """Move the first characters to the end."""
    if not text:
        return text
    start = count % len(text)
    return text[start:] + text[:start]


def mirror_str(text: str) -> str:
    """Follow the text by its reverse."""
    return text + text[::-1]


def alternate_case(text: str) -> str:
    """Write positions 0, 2, 4, ... in small letters and positions 1, 3, 5, ... in capitals."""
    return "".join([char.upper() if i % 2 else char.lower() for i, char in enumerate(text)])


def shift_chars(text: str, count: int) -> str:
    """Move every letter on in the alphabet, from z back to a; other characters stay."""
    small = "abcdefghijklmnopqrstuvwxyz"
    moved = small[count:] + small[:count]
    return text.translate(str.maketrans(small + small.upper(), moved + moved.upper()))


def vowel_to_number(text: str) -> str:
    """Replace a, e, i, o, u, small or capital, by 1, 2, 3, 4, 5."""
    return text.translate(str.maketrans("aeiouAEIOU", "1234512345"))


def insert_separator(text: str, separator: str) -> str:
    """Put a separator between neighbouring characters."""
    return separator.join(text)


def duplicate_every_char(text: str) -> str:
    """Write every character twice."""
    return "".join([char + char for char in text])


def fancy_brackets(text: str) -> str:
    """Wrap every character in angle quotes."""
    return "".join(["«" + char + "»" for char in text])


def compress_repeats(text: str) -> str:
    """Leave out a character that equals the one before it."""
    return "".join([char for i, char in enumerate(text) if i == 0 or char != text[i - 1]])


def recursive_reverse(text: str) -> str:
    """Write the text backwards."""
    return text[::-1]


def loop_concat(text: str, times: int) -> str:
    """Append the text to an empty result, several times."""
    result = ""
    for _ in range(times):
        result += text
    return result


def while_rotate(text: str, count: int) -> str:
    """Move the first character to the end, several times."""
    while count > 0 and text:
        text = text[1:] + text[0]
        count -= 1
    return text


def recursive_interlace(text: str, other: str) -> str:
    """Take one character of each text until one of them is used up; the rest of the other follows."""
    shared = min(len(text), len(other))
    woven = "".join([char for pair in zip(text[:shared], other[:shared], strict=True) for char in pair])
    return woven + text[shared:] + other[shared:]


def loop_filter_nonalpha(text: str) -> str:
    """Keep the letters only."""
    return "".join([char for char in text if char.isalpha()])


def verify_even_length(text: str) -> str:
    """Drop the last character if the length is odd."""
    return text[: len(text) - len(text) % 2]


def backchain_add_digit(text: str, depth: int) -> str:
    """Search, at most ``depth`` edits deep, for a text with a digit; the first edit tried appends a 1."""
    if depth < 1 or any(char.isdigit() for char in text):
        return text
    return text + "1"


def backchain_palindrome(text: str, depth: int) -> str:
    """Search, at most ``depth`` edits deep, for a palindrome; the edit appends the reverse."""
    if depth < 1 or text == text[::-1]:
        return text
    return text + text[::-1]


# ---- which there are, and which are trained and held out

ATOMS: dict[int, Function] = {
    function.id: function
    for function in (
        Function(0, "deterministic_shuffle", deterministic_shuffle),
        Function(1, "repeat_str", repeat_str, choices=REPEATS, frozen=2),
        Function(2, "remove_vowels", remove_vowels),
        Function(3, "sort_chars", sort_chars),
        Function(4, "reverse_words", reverse_words),
        Function(5, "add_prefix", add_prefix, takes_text=True, frozen="bf"),
        Function(6, "add_suffix", add_suffix, takes_text=True, frozen="dh"),
        Function(7, "interlace_str", interlace_str, takes_text=True, binary=True, frozen="gc"),
        Function(8, "rotate_str", rotate_str, choices=ROTATIONS, frozen=2),
        Function(9, "mirror_str", mirror_str),
        Function(10, "alternate_case", alternate_case),
        Function(11, "shift_chars", shift_chars, choices=SHIFTS, frozen=1),
        Function(12, "vowel_to_number", vowel_to_number),
        Function(13, "insert_separator", insert_separator, choices=SEPARATORS, frozen="-"),
        Function(14, "duplicate_every_char", duplicate_every_char),
        Function(15, "fancy_brackets", fancy_brackets),
        Function(16, "compress_repeats", compress_repeats),
        Function(17, "recursive_reverse", recursive_reverse),
        Function(18, "loop_concat", loop_concat, choices=REPEATS, frozen=2),
        Function(19, "while_rotate", while_rotate, choices=ROTATIONS, frozen=1),
        Function(20, "recursive_interlace", recursive_interlace, takes_text=True, binary=True, frozen="jd"),
        Function(21, "loop_filter_nonalpha", loop_filter_nonalpha),
        Function(22, "verify_even_length", verify_even_length),
        Function(23, "backchain_add_digit", backchain_add_digit, choices=DEPTHS, frozen=1),
        Function(24, "backchain_palindrome", backchain_palindrome, choices=DEPTHS, frozen=1),
    )
}
ALIASES: dict[str, Function] = {function.alias: function for function in ATOMS.values()}

PAPER_TRAIN = (1, 3, 4, 5, 9, 11, 13, 15, 17, 19, 20, 22, 23)
PAPER_HELDOUT = (0, 2, 6, 7, 8, 10, 12, 14, 16, 18, 21, 24)
# Functions that behave like another one across the paper's split; the clean splits leave them out.
TWINS = {4: "the identity", 7: "func_20", 8: "func_19", 18: "func_1", 24: "func_9"}

PRESETS: dict[str, tuple[int, ...]] = {
    "trained": tuple(id for id in PAPER_TRAIN if id not in TWINS),
    "heldout": tuple(id for id in PAPER_HELDOUT if id not in TWINS),
    "all": tuple(id for id in ATOMS if id not in TWINS),
}

# Functions that can be applied again and again and leave no string longer. A random split's held-out side has one of
# them: without, there may be no irreducible problem of level 8 on short strings.
ENDLESS = frozenset({11, 19})


def select_functions(
    preset: str, ids: Iterable[int] = (), drop: Iterable[int] = (), split: int = 0, always_trained: Iterable[int] = ()
) -> tuple[Function, ...]:
    """Return the functions of a preset, or those of ``ids`` if any are given, without ``drop``; in order of id.

    ``split``, ``always_trained``: which division in trained and held-out functions, see ``side``.
    """
    if preset not in PRESETS:
        raise UserError(f"functions={preset}: no such preset; known: {', '.join(PRESETS)}")
    for key, given in (("ids", ids := tuple(ids)), ("drop", drop := tuple(drop))):
        unknown = [id for id in given if id not in ATOMS]
        if unknown:
            raise UserError(f"{key}={list(given)}: no function has the id {unknown[0]}; ids go from 0 to {max(ATOMS)}")
    numbers = sorted(set(ids) or side(preset, split, drop, always_trained))
    chosen = tuple(ATOMS[id] for id in numbers if id not in drop)
    if not chosen:
        raise UserError(f"drop={list(drop)}: no function is left; leave at least one of {numbers}")
    return chosen


def side(preset: str, split: int = 0, drop: Iterable[int] = (), always_trained: Iterable[int] = ()) -> set[int]:
    """Return the ids of a preset without ``drop``; ``split`` 0: the paper's trained and held-out functions.

    From 1 on: a random division, drawn from the number, of the functions that are left, in as many trained ones as the
    paper's split leaves, ``always_trained`` among them. ``TWINS`` are in none, so no function behaves like one of the
    other side. UserError if a side has too few to compose, or the paper trains on none of an ``always_trained``.
    """
    presets = {name: set(ids).difference(drop) for name, ids in PRESETS.items()}
    if bad := sorted(set(always_trained).difference(PRESETS["trained"])):
        raise UserError(f"always_trained={list(always_trained)}: func_{bad[0]} is none of {list(PRESETS['trained'])}")
    always = presets["trained"].intersection(always_trained)
    if split == 0:
        return presets[preset]
    everything = presets["all"]
    sizes = len(presets["trained"]), len(presets["heldout"])
    if min(sizes) < 2:
        raise UserError(
            f"function_split={split} drop={list(drop)}: {sizes[0]} trained and {sizes[1]} held-out; leave two"
        )
    for attempt in count():
        order = sorted(everything, key=lambda id: blake2b(f"function split {split}/{attempt}/{id}".encode()).digest())
        order.sort(key=lambda id: id not in always)
        trained, heldout = set(order[: sizes[0]]), set(order[sizes[0] :])
        if heldout & ENDLESS or not (everything - always) & ENDLESS:
            break
    return {"all": everything, "trained": trained, "heldout": heldout}[preset]


@cache
def definition(run: Callable[..., str], alias: str) -> str:
    source = inspect.getsource(run).rstrip()
    body = source.partition(":\n")[2]
    names = ", ".join(inspect.signature(run).parameters)
    return f"def {alias}({names}):\n{body}".replace(f"{run.__name__}(", f"{alias}(")
