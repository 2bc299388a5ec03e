"""Figures of the paper that its text states; nothing is read off its curves.

Yuan, Chen et al., "From f(x) and g(x) to f(g(x))", arXiv 2509.25123, Llama-3.1-8B-Instruct. One run, no intervals.
Strings: held-out functions; levels 5 and 6 are stated for RL on level 1 only. Countdown: mean of 32 responses to each
of 128 problems; the string-base arm "fails", without a figure; nothing is stated for level 5. Failure modes: level 3.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

FAILURES_TITLE = "paper: Llama-3.1-8B, level 3"


@dataclass(frozen=True)
class PaperTest:
    """A test set of the paper: how it is called, the group and the pattern of ``data_source`` that it has here."""

    title: str
    group: str
    data_source: str
    figure: int


HELDOUT = PaperTest("paper: Llama-3.1-8B, held-out functions", "heldout", r"string-|codeio-", 2)
COUNTDOWN = PaperTest("paper: Llama-3.1-8B, Countdown", "countdown", r"countdown|reasoning.gym.countdown", 4)


@dataclass(frozen=True)
class PaperAccuracy:
    """Accuracy in % of one arm at one level; ``bound``: the paper says less than, or never above."""

    arm: str
    level: int
    percent: float
    section: str
    bound: bool = False
    test: PaperTest = HELDOUT


@dataclass(frozen=True)
class PaperShare:
    """Share in % of one failure class at level 3; ``bound``: the paper says more than that."""

    arm: str
    failure: str
    percent: float
    bound: bool = False


ACCURACY = (
    PaperAccuracy("stage1", 3, 5, "§4.1"),
    PaperAccuracy("stage1", 4, 1, "§4.1"),
    PaperAccuracy("rl-level1", 1, 90, "§4.1"),
    PaperAccuracy("rl-level1", 2, 25, "§4.1", bound=True),
    PaperAccuracy("rl-level1", 3, 0, "§4.1"),
    PaperAccuracy("rl-level1", 4, 0, "§4.1"),
    PaperAccuracy("rl-level1", 5, 0, "§4.1"),
    PaperAccuracy("rl-level1", 6, 0, "§4.1"),
    PaperAccuracy("rl-level2", 2, 64, "§4.2"),
    PaperAccuracy("rl-level2", 3, 27, "§4.2"),
    PaperAccuracy("rl-level2", 4, 15, "§4.1"),
    PaperAccuracy("rft", 2, 15, "§4.2"),
    PaperAccuracy("rft", 3, 2.6, "§4.2", bound=True),
    PaperAccuracy("multi-base", 3, 17, "§4.3", test=COUNTDOWN),
    PaperAccuracy("multi-base", 4, 0, "§4.3", test=COUNTDOWN),
    PaperAccuracy("multi-rl-level1", 3, 20, "§4.3", test=COUNTDOWN),
    PaperAccuracy("multi-rl-level1", 4, 0, "§4.3", test=COUNTDOWN),
    PaperAccuracy("multi-rl-level1to2", 3, 35, "§4.3", test=COUNTDOWN),
    PaperAccuracy("multi-rl-level1to2", 4, 6, "§4.3", test=COUNTDOWN),
)

_FAILING = ("stage1", "rft", "rl-level1")
SHARES = (
    *(PaperShare(arm, "ignores_composition", 50, bound=True) for arm in _FAILING),
    *(PaperShare(arm, "incorrect_composition", 35, bound=True) for arm in _FAILING),
    PaperShare("rl-level2", "correct", 28.1),
    PaperShare("rl-level2", "ignores_composition", 0),
    PaperShare("rl-level2", "atomic_error", 55),
)

TRAINING = (
    "after RL on level 1, about 90 % at level 1, under 25 % at level 2, about 0 % from level 3 on; after RL on level "
    "2, level 3 goes from 5 % to about 30 %, level 4 from 1 % to about 15 % (§4.1)."
)
BUDGET = (
    "by iteration, on held-out functions: RL on level 2 reaches 64 % at level 2 and 27 % at level 3, RFT on the same "
    "problems 15 % and never above 2.6 %; next to nothing is gained after RFT’s first iteration (§4.2)."
)
PASS_AT_K = (
    "at levels 1 and 2 the gap to the RFT base closes as k grows, at levels 3 to 6 it widens: at level 5 from 4 "
    "points at k = 1 to about 25 at the largest k; RL on level 1 follows the base at almost every level (§4.4). No "
    "interval, no figure of either curve is stated."
)
FAILURES = (
    "the RFT base, RFT on level 2 and RL on level 1 ignore the composition in over 50 % of responses and compose "
    "wrongly in over 35 %; RL on level 2 never ignores it, 28.1 % correct, 55 % atomic errors; five classes, judged "
    "by Gemini-2.5-Pro (§4.5)."
)


def matching_test(rows: Iterable[Mapping[str, Any]]) -> PaperTest | None:
    """The paper's test set that these rows of a table (group, data source) repeat; None for other tasks."""
    rows = list(rows)
    for test in (HELDOUT, COUNTDOWN):
        if any(row["group"] == test.group and re.match(test.data_source, row["data_source"]) for row in rows):
            return test
    return None


def accuracy_on(test: PaperTest | None, models: Iterable[str]) -> list[PaperAccuracy]:
    """What the paper states of these models on ``test``."""
    return [one for one in ACCURACY if one.test is test and one.arm in models]
