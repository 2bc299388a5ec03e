"""The paper's claims as data: what must be ahead of what, at which level, and by how much.

Paper: Yuan, Chen et al., arXiv 2509.25123; its string problems are compositions of held-out functions.
"""

from dataclasses import dataclass
from enum import StrEnum

NEXT_TO_NOTHING = 0.05
"""A gain up to 5 points counts as none ("does not generalise", "fails")."""


class Rule(StrEnum):
    """How a difference is held against its threshold."""

    ABOVE = ">"
    AT_MOST = "≤"
    APART = "apart"
    EVERY_SEED = "every seed"


@dataclass(frozen=True)
class Comparison:
    """accuracy(model) − times × accuracy(base) at one level, against a threshold (a share, 0.2 = 20 points)."""

    functions: str
    level: int
    model: str
    base: str
    rule: Rule = Rule.ABOVE
    threshold: float = 0.0
    times: float = 1.0

    @property
    def words(self) -> str:
        """``trained L3: rl-level2 − rl-level1 > 20``, in points."""
        what = f"{self.functions} L{self.level}: {self.model}"
        base = self.base if self.times == 1 else f"{self.times:g} × {self.base}"
        if self.rule in (Rule.APART, Rule.EVERY_SEED):
            return f"{what} > {base}, {self.rule}"
        return f"{what} − {base} {self.rule} {100 * self.threshold:g}"


@dataclass(frozen=True)
class Claim:
    """A statement, what the paper says of it, and the comparisons that must all hold."""

    name: str
    text: str
    paper: str
    comparisons: tuple[Comparison, ...]


def _gains(model: str, *groups: tuple[str, int]) -> tuple[Comparison, ...]:
    """The model gains next to nothing over stage1."""
    return tuple(Comparison(*group, model, "stage1", Rule.AT_MOST, NEXT_TO_NOTHING) for group in groups)


def _ahead(level: int, model: str, *bases: str) -> tuple[Comparison, ...]:
    """The model is ahead of each of the others on Countdown."""
    return tuple(Comparison("countdown", level, model, base) for base in bases)


BOTH_AT_3 = (("trained", 3), ("heldout", 3))
CLAIMS = (
    Claim(
        "H1a",
        "RL on level 2 teaches deeper compositions, RL on level 1 does not (trained functions)",
        "no figures: the paper tests held-out functions only",
        tuple(Comparison("trained", level, "rl-level2", "rl-level1", Rule.ABOVE, threshold=0.2) for level in (3, 4)),
    ),
    Claim(
        "H1b",
        "… and it carries over to held-out functions",
        "level 3: about 5 % before, about 30 % after RL on level 2, about 0 % after RL on level 1 (§4.1)",
        tuple(Comparison("heldout", 3, "rl-level2", base) for base in ("rl-level1", "stage1")),
    ),
    Claim(
        "H1b-apart",
        "… with intervals that do not touch",
        "no intervals are given",
        tuple(Comparison("heldout", 3, "rl-level2", base, Rule.APART) for base in ("rl-level1", "stage1")),
    ),
    Claim(
        "H1c",
        "… to twice the accuracy before RL, on every seed",
        "level 3: about six times (5 % to about 30 %), one run (§4.1)",
        (Comparison("heldout", 3, "rl-level2", "stage1", Rule.EVERY_SEED, times=2.0),),
    ),
    Claim(
        "H2-trained",
        "RL on level 1 alone does not generalise: at most 5 points over stage1 (trained functions)",
        "no figures: the paper tests held-out functions only",
        _gains("rl-level1", *(("trained", level) for level in (2, 3, 4))),
    ),
    Claim(
        "H2-heldout",
        "RL on level 1 alone does not generalise: at most 5 points over stage1 (held-out functions)",
        "level 2 under 25 %, levels 3 to 6 about 0 %; under 1 point gained at level 3 (§1, §4.1)",
        _gains("rl-level1", *(("heldout", level) for level in (2, 3, 4))),
    ),
    Claim(
        "H3-rft",
        "RFT on level 2 fails in the original's budget: at most 5 points over stage1",
        "level 3 never above 2.6 %, under 1 point gained (§1, §4.2)",
        _gains("rft", *BOTH_AT_3),
    ),
    Claim(
        "H3-rft-matched",
        "RFT on level 2 fails in RL's budget: at most 5 points over stage1",
        "the budgets in the paper are not matched",
        _gains("rft-matched", *BOTH_AT_3),
    ),
    Claim(
        "H3-behind",
        "RL on level 2 is ahead of RFT in the original's budget",
        "level 2: 64 % and 15 %; level 3: 27 % and at most 2.6 % (§4.2)",
        tuple(Comparison(*group, "rl-level2", "rft") for group in BOTH_AT_3),
    ),
    Claim(
        "H3-behind-matched",
        "RL on level 2 is ahead of RFT in RL's budget",
        "the budgets in the paper are not matched",
        tuple(Comparison(*group, "rl-level2", "rft-matched") for group in BOTH_AT_3),
    ),
    Claim(
        "H4",
        "Composition learnt on strings helps on Countdown, if its atoms are known",
        "level 3: about 17 % before RL, 20 % after RL on level 1, 35 % after RL on levels 1 and 2 (§4.3)",
        _ahead(3, "multi-rl-level1to2", "multi-base", "multi-rl-level1"),
    ),
    Claim(
        "H4-deeper",
        "… and with four numbers too",
        "level 4: about 6 % after RL on levels 1 and 2, near 0 without (§4.3)",
        _ahead(4, "multi-rl-level1to2", "multi-base", "multi-rl-level1"),
    ),
    Claim(
        "H5",
        "The atoms are a prerequisite: without them RL on strings gains at most 5 points, and stays behind",
        "string-base with RL on levels 1 and 2 fails completely; no figure is given (§4.3)",
        (
            Comparison("countdown", 3, "string-rl-level1to2", "string-base", Rule.AT_MOST, NEXT_TO_NOTHING),
            *_ahead(3, "multi-rl-level1to2", "string-rl-level1to2"),
        ),
    ),
)
