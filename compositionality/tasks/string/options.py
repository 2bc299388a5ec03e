"""What can be chosen in clean mode."""

import string
from dataclasses import dataclass, fields
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.stream import check_choice

LETTERS_AND_SOME_DIGITS = string.ascii_lowercase * 2 + "123"
LEVELS = range(1, 13)
"""A chain of n functions has 2^n shorter ones, and all are tried."""
LONGEST = 10_000
"""Characters at most at any step."""
_RESERVED = set("=:,;'\"\\{}<>|-_«»") | set(string.whitespace)


@dataclass(frozen=True)
class StringOptions:
    """Options of the clean mode.

    No problem keeps its answer on its input where functions are left out, their order kept. With shape=tree a function
    that is left out gives way to one of its arguments; of a sub-tree's shorter values the first 1,024 are tried.
    order_sensitive: chains of 2 to 6 functions are tried in every order, longer ones with any two functions exchanged.
    """

    functions: str = "trained"  # preset: trained, heldout or all
    ids: tuple[int, ...] = ()  # these functions instead
    drop: tuple[int, ...] = ()  # functions to leave out
    function_split: int = 0  # which functions are held out: 0 the paper's, n a random division drawn from n
    always_trained: tuple[int, ...] = ()  # functions that no division holds out
    order_sensitive: bool = False  # only problems that no other order of their functions solves
    levels: tuple[int, ...] = (1,)  # depths; candidates take turns
    shape: str = "chain"  # chain, or tree (style=json only)
    alphabet: str = LETTERS_AND_SOME_DIGITS  # of inputs and literals; what is written twice is drawn twice as often
    input_length: tuple[int, int] = (3, 10)  # shortest and longest input
    max_length: int = 100  # longest string at any step
    frozen_parameters: bool = False  # every function keeps one parameter
    style: str = "json"  # of the prompt: json or compact
    show_definitions: bool = False  # in the prompt
    group: str = ""  # name of this set of problems in tables; empty: that of its functions

    def content(self) -> list[tuple[str, Any]]:
        """The options beside the functions that decide which problems are drawn, where they are not the defaults."""
        others = ("style", "show_definitions", "functions", "ids", "drop", "function_split", "always_trained", "group")
        given = [(entry.name, getattr(self, entry.name), entry.default) for entry in fields(self)]
        return [(name, value) for name, value, default in given if name not in others and value != default]

    def __post_init__(self) -> None:
        check_choice("shape", self.shape, ("chain", "tree"))
        check_choice("style", self.style, ("json", "compact"))
        if self.shape == "tree" and self.style == "compact":
            raise UserError("style=compact is for chains; use style=json with shape=tree")
        if self.order_sensitive and (self.shape == "tree" or 1 in self.levels):
            raise UserError(
                f"order_sensitive=true shape={self.shape} levels={list(self.levels)}: only chains of two or more "
                "functions have an order; use shape=chain and levels from 2 on"
            )
        if self.group and not self.group.isidentifier():
            raise UserError(f"group={self.group}: give a word")
        if self.function_split < 0:
            raise UserError(f"function_split={self.function_split}: give 0 (the paper's split) or a number from 1 on")
        if not self.levels or not all(level in LEVELS for level in self.levels) or _twice(self.levels):
            raise UserError(f"levels={list(self.levels)}: give different whole numbers from 1 to {LEVELS[-1]}")
        for name, ids in (("ids", self.ids), ("drop", self.drop), ("always_trained", self.always_trained)):
            if _twice(ids):
                raise UserError(f"{name}={list(ids)}: give every id once")
        if len(self.input_length) != 2:
            raise UserError(f"input_length={list(self.input_length)}: give shortest and longest, as [3,10]")
        low, high = self.input_length
        if not 3 <= low <= high <= self.max_length <= LONGEST:
            raise UserError(
                f"input_length=[{low},{high}] max_length={self.max_length}: "
                f"need 3 <= shortest <= longest <= max_length <= {LONGEST}"
            )
        reserved = sorted(set(self.alphabet) & _RESERVED)
        if reserved or not self.alphabet.isascii():
            raise UserError(f"alphabet={self.alphabet!r}: use ASCII letters and digits; {reserved} are reserved")


def _twice(numbers: tuple[int, ...]) -> bool:
    return len(set(numbers)) < len(numbers)


@dataclass(frozen=True)
class StringPaperOptions:
    """Options of the paper's mode."""

    stage: int = 1  # 1: definitions shown, all functions; 2: hidden
    min_level: int = 1  # first depth
    max_level: int = 1  # last depth
