"""What can be chosen."""

from dataclasses import dataclass, fields
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.igsm.names import read_systems
from compositionality.tasks.igsm.wording import STYLES
from compositionality.tasks.stream import check_choice

OPERATIONS = range(1, 41)
LAWS = ("equal", "min-of-two")
LARGEST = 1000
"""Answers that are whole numbers lie below it, and above its negative."""


@dataclass(frozen=True)
class IgsmOptions:
    """Options of the task; the level of a problem is how many operations its solution takes.

    law: how often each level comes; min-of-two is the paper's (the smaller of two, so that few are hard). modulus=23 is
    iGSM's. most_common: answers that would be right more often are thinned out until none is.
    """

    levels: tuple[int, ...] = (15, 16, 17, 18, 19, 20)  # operations
    law: str = "equal"  # how often each level comes: equal or min-of-two
    modulus: int = 0  # of all arithmetic; 0: plain whole numbers, answers from -999 to 999
    most_edges: int = 20  # instances at most, from which necessary and redundant premises are taken
    redundant: bool = True  # state what the question does not need too
    shuffled: bool = True  # the premises, else each after those it depends on
    most_common: float = 0.06  # share of problems at most with the same answer; 1: as they come
    group: str = "igsm"  # name of this set of problems: igsm, ood …
    names: str = ""  # YAML file of naming systems; empty: ours
    style: str = "text"  # of the prompt: text or compact
    process: bool = False  # judge the whole chain of a completion, not its answer alone

    def content(self) -> list[tuple[str, Any]]:
        """The options that decide which problems are drawn, where they are not the defaults."""
        words = ("style", "process", "names", "levels", "group")
        given = [(entry.name, getattr(self, entry.name), entry.default) for entry in fields(self)]
        return [(name, value) for name, value, default in given if name not in words and value != default]

    def __post_init__(self) -> None:
        check_choice("style", self.style, STYLES)
        check_choice("law", self.law, LAWS)
        if not self.group.isidentifier():
            raise UserError(f"group={self.group}: give a word")
        levels = self.levels
        if not levels or len(set(levels)) < len(levels) or not all(level in OPERATIONS for level in levels):
            raise UserError(
                f"levels={list(levels)}: give different whole numbers from 1 to {OPERATIONS[-1]}, operations"
            )
        if self.law == "min-of-two" and sorted(levels) != list(range(min(levels), max(levels) + 1)):
            raise UserError(f"law=min-of-two levels={list(levels)}: give all levels from the least to the largest")
        if self.modulus != 0 and not 2 <= self.modulus <= LARGEST:
            raise UserError(f"modulus={self.modulus}: give 0 (plain whole numbers) or 2 to {LARGEST}")
        if not 2 <= self.most_edges <= 48:
            raise UserError(f"most_edges={self.most_edges}: give 2 to 48")
        least = 1.5 / self.modulus if self.modulus else 0.01
        if not least <= self.most_common <= 1:
            raise UserError(f"most_common={self.most_common}: give {least:.2g} to 1 (1: no thinning)")
        read_systems(self.names)
