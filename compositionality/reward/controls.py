"""Rewards of negative controls: RL as ever, but nothing in the rewards tells right answers from wrong ones."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from compositionality.reward.shapes import Shape
from compositionality.types import PromptGroup


class Control(StrEnum):
    """Of what is sampled at a time, with dynamic sampling a part of a step. ``shuffled``: its rewards, permuted across
    all its completions. ``random``: 1 with its share of right answers as probability, else 0. ``format``: 1 for every
    readable, finished answer, else 0."""

    NONE = "none"
    SHUFFLED = "shuffled"
    RANDOM = "random"
    FORMAT = "format"


def shape_of(control: str, shape: str) -> str:
    """Return how a verdict becomes a reward: as ever, but for the format control."""
    return Shape.FORMAT if control == Control.FORMAT else shape


def replace_rewards(control: str, groups: Sequence[PromptGroup], seed: Sequence[int]) -> None:
    """Replace, in place, the rewards of groups that were sampled together; a failed verdict stays None."""
    if control not in (Control.SHUFFLED, Control.RANDOM):
        return
    judged = [(group, place) for group in groups for place, value in enumerate(group.rewards) if value is not None]
    generator = np.random.default_rng(seed)
    if control == Control.SHUFFLED:
        before = [group.rewards[place] for group, place in judged]
        drawn = [before[other] for other in generator.permutation(len(before))]
    else:
        share = sum(group.correct[place] for group, place in judged) / max(len(judged), 1)
        drawn = [float(value) for value in generator.random(len(judged)) < share]
    for (group, place), value in zip(judged, drawn, strict=True):
        group.rewards[place] = value
