"""Rewards as functions of a verdict."""

from enum import StrEnum

from compositionality.types import Reason, Verdict


class Shape(StrEnum):
    """``binary``: 1 if correct, else 0. ``paper``: +1 correct, 0 wrong, −1 without a readable or finished answer.
    ``score``: the verdict's own. ``format``, a control: 1 for every readable, finished answer, right or wrong, else 0.
    """

    BINARY = "binary"
    PAPER = "paper"
    SCORE = "score"
    FORMAT = "format"


_UNREADABLE = frozenset({Reason.NO_ANSWER, Reason.MALFORMED, Reason.OVERLONG})


def reward(verdict: Verdict, shape: Shape | str = Shape.BINARY) -> float | None:
    """Return the reward of ``verdict``; None where the judge failed, which is no reward at all (P5)."""
    if verdict.reason is Reason.ERROR:
        return None
    if Shape(shape) is Shape.SCORE:
        return verdict.score
    readable = verdict.reason not in _UNREADABLE
    if Shape(shape) is Shape.FORMAT:
        return float(readable)
    if Shape(shape) is Shape.PAPER and not readable:
        return -1.0
    return 1.0 if verdict.reason is Reason.CORRECT else 0.0
