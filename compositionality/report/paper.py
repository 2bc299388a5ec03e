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
