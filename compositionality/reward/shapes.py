"""Rewards as functions of a verdict, and rewards of negative controls, which do not depend on right or wrong."""

from collections.abc import Sequence
from enum import StrEnum

from compositionality.types import PromptGroup, Reason, Verdict


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
    """Return the reward of ``verdict``; None if the judge failed: then there is no reward (P5)."""
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


def overlong_penalty(n_tokens: int, max_tokens: int, buffer: int, penalty: float) -> float:
    """Return DAPO's penalty: linear from 0 to -``penalty`` over the last ``buffer`` of ``max_tokens``."""
    return -penalty * min(max((n_tokens - max_tokens + buffer) / buffer, 0.0), 1.0) if buffer else 0.0


class Control(StrEnum):
    """Rewards of a control, per sampling round (with dynamic sampling a part of a step). ``shuffled``: its rewards,
    permuted across all completions. ``random``: 1 with its share of right answers as probability, else 0. ``format``: 1
    for every readable, finished answer, else 0."""

    NONE = "none"
    SHUFFLED = "shuffled"
    RANDOM = "random"
    FORMAT = "format"


def shape_of(control: str, shape: str) -> str:
    """Return the shape of the rewards: ``shape``, except for the format control."""
    return Shape.FORMAT if control == Control.FORMAT else shape


def replace_rewards(control: str, groups: Sequence[PromptGroup], seed: Sequence[int]) -> None:
    """Replace, in place, the rewards of groups that were sampled together; a failed verdict stays None."""
    if control not in (Control.SHUFFLED, Control.RANDOM):
        return
    import numpy as np  # judging processes import this module but do not need numpy

    judged = [(group, place) for group in groups for place, value in enumerate(group.rewards) if value is not None]
    generator = np.random.default_rng(seed)
    if control == Control.SHUFFLED:
        rewards = [group.rewards[place] for group, place in judged]
        values = [rewards[number] for number in generator.permutation(len(rewards))]
    else:
        share = sum(group.correct[place] for group, place in judged) / max(len(judged), 1)
        values = [float(value) for value in generator.random(len(judged)) < share]
    for (group, place), value in zip(judged, values, strict=True):
        group.rewards[place] = value
