"""What can be chosen in clean mode."""

from dataclasses import asdict, dataclass
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.countdown.prompts import OPERATORS
from compositionality.tasks.stream import check_choice, check_count

LEVELS = range(2, 7)
GROUP = "countdown"
OPERATOR_SETS = ("+", "*", "+-", "*/", "+*", "+-*", "+*/", "+-*/")
"""A minus comes with a plus and a division with a product: ``a-(b-c)`` is a sum in disguise."""
EXACT = 2**53
"""Whole numbers below it are exact as float64."""


@dataclass(frozen=True)
class CountdownOptions:
    """Options of the clean mode; the level of a problem is how many numbers it gives."""

    levels: tuple[int, ...] = (3,)  # how many numbers; candidates take turns
    numbers: tuple[int, int] = (1, 100)  # smallest and largest, both included
    target: tuple[int, int] = (1, 999)  # smallest and largest, both included
    operators: str = OPERATORS  # that may be used
    use: str = "all"  # all numbers, or any of them
    whole: bool = True  # some solution has only whole, positive values on its way
    minimal: bool = False  # fewer numbers do not suffice
    style: str = "text"  # of the prompt: text, or compact (whole=true only)

    def content(self) -> list[tuple[str, Any]]:
        """The options that decide which problems are drawn (the wording does not)."""
        return [(name, value) for name, value in asdict(self).items() if name != "style"]

    def __post_init__(self) -> None:
        check_choice("use", self.use, ("all", "any"))
        check_choice("style", self.style, ("text", "compact"))
        if self.style == "compact" and not self.whole:
            raise UserError("style=compact writes whole numbers only; use whole=true or style=text")
        check_choice("operators", self.operators, OPERATOR_SETS)
        _check_levels(self.levels)
        self._check_ranges()

    def _check_ranges(self) -> None:
        for name, pair in (("numbers", self.numbers), ("target", self.target)):
            if len(pair) != 2 or not all(type(end) is int for end in pair) or not 1 <= pair[0] <= pair[1]:
                raise UserError(f"{name}={list(pair)}: give smallest and largest, whole numbers from 1 on, as [1,100]")
        largest, most = self.numbers[1], max(self.levels)
        if (2 * largest) ** most >= EXACT:
            largest = max(n for n in range(1, int(EXACT ** (1 / most)) + 1) if (2 * n) ** most < EXACT)
            raise UserError(
                f"numbers={list(self.numbers)}: levels up to {most} are solved with numbers up to {largest}"
            )
        reach = max(largest * most, largest**most if "*" in self.operators else 0)
        if reach < self.target[0]:
            raise UserError(
                f"target={list(self.target)} is out of reach of {most} numbers up to {largest}; lower it or raise them"
            )


@dataclass(frozen=True)
class CountdownPaperOptions:
    """The paper's mode: 50,000 problems with two numbers to train on, 512 each with three to five to test."""

    levels: tuple[int, ...] = (2,)  # how many numbers

    def check(self, count: int) -> None:
        """UserError for levels that there are not, and a ``count`` that they do not share evenly."""
        _check_levels(self.levels)
        check_count(count, len(self.levels))


def _check_levels(levels: tuple[int, ...]) -> None:
    if not levels or len(set(levels)) < len(levels) or not all(level in LEVELS for level in levels):
        raise UserError(
            f"levels={list(levels)}: give different whole numbers from 2 to {LEVELS[-1]}, how many numbers to give"
        )
