"""The atomic functions as data: ids, real names, parameters, splits, and what can be done with them."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import count

from compositionality.errors import UserError
from compositionality.tasks.string import library

Parameter = int | str

REPEATS = (2, 3, 4)
ROTATIONS = (1, 2, 3)
SHIFTS = (1, 2, 3, 4, 5)
SEPARATORS = ("-", "_", "|")
DEPTHS = (1, 2, 3)
TEXT_LENGTHS = (2, 4)


def alias_of(id: int) -> str:
    """``func_N`` of the study's functions, ``other_N`` of the others that pretraining text is about."""
    return f"{'func' if id in ATOMS else 'other'}_{id}"


@dataclass(frozen=True, slots=True)
class Function:
    """One atomic function.

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
        """The name that prompts show: see ``alias_of``."""
        return alias_of(self.id)

    @property
    def parametrised(self) -> bool:
        """Whether it takes anything besides the text."""
        return bool(self.choices) or self.takes_text

    def source(self) -> str:
        """Python source of the definition, under its alias and without type hints."""
        return definition(self.run, self.alias)


@dataclass(frozen=True, slots=True)
class Operation:
    """A function with its parameter; if ``frozen``, the compact style leaves the parameter out."""

    function: Function
    parameter: Parameter | None = None
    frozen: bool = False

    def __call__(self, text: str) -> str:
        """Apply it to ``text``."""
        if self.parameter is None:
            return self.function.run(text)
        return self.function.run(text, self.parameter)


Chain = tuple[Operation, ...]
"""Operations, outermost first."""


def _atoms() -> Iterable[Function]:
    run = library
    yield Function(0, "deterministic_shuffle", run.deterministic_shuffle)
    yield Function(1, "repeat_str", run.repeat_str, choices=REPEATS, frozen=2)
    yield Function(2, "remove_vowels", run.remove_vowels)
    yield Function(3, "sort_chars", run.sort_chars)
    yield Function(4, "reverse_words", run.reverse_words)
    yield Function(5, "add_prefix", run.add_prefix, takes_text=True, frozen="bf")
    yield Function(6, "add_suffix", run.add_suffix, takes_text=True, frozen="dh")
    yield Function(7, "interlace_str", run.interlace_str, takes_text=True, binary=True, frozen="gc")
    yield Function(8, "rotate_str", run.rotate_str, choices=ROTATIONS, frozen=2)
    yield Function(9, "mirror_str", run.mirror_str)
    yield Function(10, "alternate_case", run.alternate_case)
    yield Function(11, "shift_chars", run.shift_chars, choices=SHIFTS, frozen=1)
    yield Function(12, "vowel_to_number", run.vowel_to_number)
    yield Function(13, "insert_separator", run.insert_separator, choices=SEPARATORS, frozen="-")
    yield Function(14, "duplicate_every_char", run.duplicate_every_char)
    yield Function(15, "fancy_brackets", run.fancy_brackets)
    yield Function(16, "compress_repeats", run.compress_repeats)
    yield Function(17, "recursive_reverse", run.recursive_reverse)
    yield Function(18, "loop_concat", run.loop_concat, choices=REPEATS, frozen=2)
    yield Function(19, "while_rotate", run.while_rotate, choices=ROTATIONS, frozen=1)
    yield Function(20, "recursive_interlace", run.recursive_interlace, takes_text=True, binary=True, frozen="jd")
    yield Function(21, "loop_filter_nonalpha", run.loop_filter_nonalpha)
    yield Function(22, "verify_even_length", run.verify_even_length)
    yield Function(23, "backchain_add_digit", run.backchain_add_digit, choices=DEPTHS, frozen=1)
    yield Function(24, "backchain_palindrome", run.backchain_palindrome, choices=DEPTHS, frozen=1)


ATOMS: dict[int, Function] = {function.id: function for function in _atoms()}
ALIASES: dict[str, Function] = {function.alias: function for function in ATOMS.values()}

PAPER_TRAIN = (1, 3, 4, 5, 9, 11, 13, 15, 17, 19, 20, 22, 23)
PAPER_HELDOUT = (0, 2, 6, 7, 8, 10, 12, 14, 16, 18, 21, 24)
TWINS = {4: "the identity", 7: "func_20", 8: "func_19", 18: "func_1", 24: "func_9"}
"""Functions that behave like another one across the paper's split; the clean splits leave them out."""

PRESETS: dict[str, tuple[int, ...]] = {
    "trained": tuple(id for id in PAPER_TRAIN if id not in TWINS),
    "heldout": tuple(id for id in PAPER_HELDOUT if id not in TWINS),
    "all": tuple(id for id in ATOMS if id not in TWINS),
}

ENDLESS = frozenset({11, 19})
"""Functions that can be applied again and again and leave no string longer. A random split's held-out side has one of
them: without, there may be no irreducible problem of level 8 on short strings."""


def frozen_operation(function: Function) -> Operation:
    """``function`` with the parameter that stands for all."""
    return Operation(function, function.frozen, frozen=True)


def select_functions(
    preset: str, ids: Iterable[int] = (), drop: Iterable[int] = (), split: int = 0, always_trained: Iterable[int] = ()
) -> tuple[Function, ...]:
    """The functions of a preset, or those of ``ids`` if any are given, without ``drop``; in order of id.

    ``split``, ``always_trained``: which division in trained and held-out functions, see ``side``.
    """
    if preset not in PRESETS:
        raise UserError(f"functions={preset}: no such preset; known: {', '.join(PRESETS)}")
    for key, given in (("ids", ids := tuple(ids)), ("drop", drop := tuple(drop))):
        unknown = [id for id in given if id not in ATOMS]
        if unknown:
            raise UserError(f"{key}={list(given)}: no function has the id {unknown[0]}; ids go from 0 to {max(ATOMS)}")
    wanted = sorted(set(ids) or side(preset, split, drop, always_trained))
    chosen = tuple(ATOMS[id] for id in wanted if id not in drop)
    if not chosen:
        raise UserError(f"drop={list(drop)}: no function is left; leave at least one of {wanted}")
    return chosen


def side(preset: str, split: int = 0, drop: Iterable[int] = (), always_trained: Iterable[int] = ()) -> set[int]:
    """The ids of a preset without ``drop``; ``split`` 0: the paper's trained and held-out functions.

    From 1 on: a random division, drawn from the number, of the functions that are left, in as many trained ones as the
    paper's split leaves, ``always_trained`` among them. ``TWINS`` are in none, so no function behaves like one of the
    other side. UserError if a side has too few to compose, or the paper trains on none of an ``always_trained``.
    """
    presets = {name: set(ids).difference(drop) for name, ids in PRESETS.items()}
    if bad := sorted(set(always_trained).difference(PRESETS["trained"])):
        raise UserError(f"always_trained={list(always_trained)}: func_{bad[0]} is none of {list(PRESETS['trained'])}")
    kept = presets["trained"].intersection(always_trained)
    if split == 0:
        return presets[preset]
    everything, sizes = presets["all"], (len(presets["trained"]), len(presets["heldout"]))
    if min(sizes) < 2:
        raise UserError(
            f"function_split={split} drop={list(drop)}: {sizes[0]} trained and {sizes[1]} held-out; leave two"
        )
    for attempt in count():
        order = sorted(everything, key=lambda id: blake2b(f"function split {split}/{attempt}/{id}".encode()).digest())
        order.sort(key=lambda id: id not in kept)
        trained, heldout = set(order[: sizes[0]]), set(order[sizes[0] :])
        if heldout & ENDLESS or not (everything - kept) & ENDLESS:
            break
    return {"all": everything, "trained": trained, "heldout": heldout}[preset]


@cache
def definition(run: Callable[..., str], alias: str) -> str:
    """The source of ``run`` under another name, type hints removed."""
    source = inspect.getsource(run).rstrip()
    body = source.partition(":\n")[2]
    names = ", ".join(inspect.signature(run).parameters)
    return f"def {alias}({names}):\n{body}".replace(f"{run.__name__}(", f"{alias}(")
