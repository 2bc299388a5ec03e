"""The steps that a completion states, and what the first fault in them can be."""

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """What the first fault of a trace is: of three classes, the last six of incorrect composition."""

    RESULT = "result"  # the function was applied to the stated string, and its result is another one
    MISCOPIED = "miscopied"  # the string that goes in is not the one that came out before
    ANSWER = "answer"  # every step is right, the final answer is another string
    INPUT_AGAIN = "input_again"  # a step starts from the problem's input, not from what came out before
    WRONG_ORDER = "wrong_order"
    MISSING = "missing"
    EXTRA = "extra"
    OTHER_FUNCTION = "other_function"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class StatedStep:
    """One step as a response states it: ``given`` are the strings that go in (None: not stated)."""

    name: str
    given: tuple[str, ...] | None
    result: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps of a response in its order; ``broken``: how many of them come before the first unreadable line."""

    steps: tuple[StatedStep, ...]
    broken: int | None = None
