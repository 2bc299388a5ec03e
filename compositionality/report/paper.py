"""The paper's own figures, as far as its text states them: nothing is read off its curves.

Yuan, Chen et al., "From f(x) and g(x) to f(g(x))", arXiv 2509.25123, Llama-3.1-8B-Instruct. No seeds, no intervals.
Strings: held-out functions; figures for levels 5 and 6 are stated for RL on level 1 only. Countdown: mean of 32 answers
to each of 128 problems; the string-base arm "fails", without a figure, and nothing is stated for level 5.
"""

from dataclasses import dataclass

SOURCE = "paper: Llama-3.1-8B, {what}"
NOTE = "from the text of arXiv 2509.25123; open marker: upper bound"


@dataclass(frozen=True)
class Stated:
    """Accuracy in % of one arm at one level; ``bound``: the paper says less than, or never above."""

    arm: str
    level: int
    percent: float
    section: str
    bound: bool = False


STATED = (
    Stated("stage1", 3, 5, "§4.1"),
    Stated("stage1", 4, 1, "§4.1"),
    Stated("rl-level1", 1, 90, "§4.1"),
    Stated("rl-level1", 2, 25, "§4.1", bound=True),
    Stated("rl-level1", 3, 0, "§4.1"),
    Stated("rl-level1", 4, 0, "§4.1"),
    Stated("rl-level1", 5, 0, "§4.1"),
    Stated("rl-level1", 6, 0, "§4.1"),
    Stated("rl-level2", 2, 64, "§4.2"),
    Stated("rl-level2", 3, 27, "§4.2"),
    Stated("rl-level2", 4, 15, "§4.1"),
    Stated("rft", 2, 15, "§4.2"),
    Stated("rft", 3, 2.6, "§4.2", bound=True),
    Stated("multi-base", 3, 17, "§4.3"),
    Stated("multi-base", 4, 0, "§4.3"),
    Stated("multi-rl-level1", 3, 20, "§4.3"),
    Stated("multi-rl-level1", 4, 0, "§4.3"),
    Stated("multi-rl-level1to2", 3, 35, "§4.3"),
    Stated("multi-rl-level1to2", 4, 6, "§4.3"),
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
FAILURE_WORDS = (
    "the RFT base, RFT on level 2 and RL on level 1 ignore the composition in over 50 % of answers and compose "
    "wrongly in over 35 %; RL on level 2 never ignores it, 28.1 % correct, 55 % atomic errors; five classes, judged "
    "by Gemini-2.5-Pro (§4.5)."
)
