"""The paper's claims as data: what must be ahead of what, at which level, and by how much; and negative controls.

Paper: Yuan, Chen et al., arXiv 2509.25123; its string problems are compositions of held-out functions. A claim named
after its hypothesis is the paper's own, one with more to its name a variant: other functions, another budget, a
stronger or weaker form.
"""

from compositionality.evaluate.claims.claim import ALL_SAMPLES, GROWTH, Claim, Comparison, Metric, Rule

NEXT_TO_NOTHING = 0.05
"""A gain up to 5 points counts as none ("does not generalise", "fails"); models within 5 points are alike."""
BOTH_AT_3 = (("trained", 3), ("heldout", 3))


def _gains(model: str, *groups: tuple[str, int]) -> tuple[Comparison, ...]:
    """The model gains next to nothing over stage1."""
    return tuple(Comparison(*group, model, "stage1", Rule.AT_MOST, NEXT_TO_NOTHING) for group in groups)


def _ahead(functions: str, level: int, model: str, *bases: str, by: float = 0.0) -> tuple[Comparison, ...]:
    """The model is ahead of each of the others, by more than ``by``: the least lead that counts."""
    return tuple(Comparison(functions, level, model, base, threshold=by) for base in bases)


def _pass_at(level: int, model: str, rule: Rule, threshold: float, part: str = ALL_SAMPLES) -> Comparison:
    """The model's lead over stage1 with many samples, or how that lead grows with them; held-out functions."""
    return Comparison("heldout", level, model, "stage1", rule, threshold, metric=Metric.PASS_AT_K, part=part)


def _failing(part: str, model: str, base: str = "", rule: Rule = Rule.ABOVE, threshold: float = 0.0) -> Comparison:
    """The share of a class of failures among all answers at level 3, held-out functions."""
    return Comparison("heldout", 3, model, base, rule, threshold, metric=Metric.FAILURES, part=part)


_H1 = Claim(
    "H1",
    "RL on single functions does not teach composition: at most 5 points over stage1 (held-out functions)",
    "level 1 about 90 %, level 2 under 25 %, levels 3 to 6 about 0 %; under 1 point gained at level 3",
    "§4.1, Fig. 2, §1",
    _gains("rl-level1", *(("heldout", level) for level in (2, 3, 4))),
)
_H3 = Claim(
    "H3",
    "RFT on level 2 fails, in the original's budget: at most 5 points over stage1",
    "level 3 never above 2.6 %, under 1 point gained (held-out functions)",
    "§4.2, Fig. 3, §1",
    _gains("rft", *BOTH_AT_3),
)
_OTHERS = ("stage1", "rft", "rl-level1")

CLAIMS = (
    _H1,
    Claim(
        "H1-trained",
        "… nor on the functions that it was trained on",
        "no figures: only held-out functions are tested",
        "",
        _gains("rl-level1", *(("trained", level) for level in (2, 3, 4))),
    ),
    Claim(
        "H2",
        "RL on compositions of two generalises to deeper ones of held-out functions",
        "level 3: about 5 % before, about 30 % after RL on level 2, about 0 % after RL on level 1",
        "§4.1, Fig. 2",
        _ahead("heldout", 3, "rl-level2", "rl-level1", "stage1"),
    ),
    Claim(
        "H2-apart",
        "… with intervals that do not touch",
        "no intervals are given",
        "",
        tuple(Comparison("heldout", 3, "rl-level2", base, Rule.APART) for base in ("rl-level1", "stage1")),
    ),
    Claim(
        "H2-twice",
        "… to twice the accuracy before RL, on every seed",
        "level 3: about six times (5 % to about 30 %), one run",
        "§4.1",
        (Comparison("heldout", 3, "rl-level2", "stage1", Rule.EVERY_SEED, times=2.0),),
    ),
    Claim(
        "H2-deeper",
        "… to levels 4 and 5 too",
        "level 4: about 1 % before, about 15 % after; level 5 gains too, without a figure",
        "§4.1, Fig. 2",
        tuple(Comparison("heldout", level, "rl-level2", "stage1") for level in (4, 5)),
    ),
    Claim(
        "H2-trained",
        "… and, by more than 20 points over RL on level 1, of the functions that it was trained on",
        "no figures: only held-out functions are tested",
        "",
        tuple(Comparison("trained", level, "rl-level2", "rl-level1", Rule.ABOVE, 0.2) for level in (3, 4)),
    ),
    _H3,
    Claim(
        "H3-matched",
        "… in RL's budget too",
        "the budgets in the paper are not matched",
        "",
        _gains("rft-matched", *BOTH_AT_3),
    ),
    Claim(
        "H3-behind",
        "RL on level 2 is ahead of RFT in the original's budget",
        "level 2: 64 % and 15 %; level 3: 27 % and at most 2.6 %",
        "§4.2, Fig. 3",
        tuple(Comparison(*group, "rl-level2", "rft") for group in BOTH_AT_3),
    ),
    Claim(
        "H3-behind-matched",
        "… and of RFT in RL's budget",
        "the budgets in the paper are not matched",
        "",
        tuple(Comparison(*group, "rl-level2", "rft-matched") for group in BOTH_AT_3),
    ),
    Claim(
        "H4",
        "Composition learnt on strings helps on Countdown, if its atoms are known: by more than 5 points",
        "level 3: about 17 % before RL, 20 % after RL on level 1, 35 % after RL on levels 1 and 2",
        "§4.3, Fig. 4",
        _ahead("countdown", 3, "multi-rl-level1to2", "multi-base", "multi-rl-level1", by=NEXT_TO_NOTHING),
    ),
    Claim(
        "H4-deeper",
        "… and with four numbers too: by more than 3 points, half of the paper's",
        "level 4: about 6 % after RL on levels 1 and 2, near 0 without",
        "§4.3, Fig. 4",
        _ahead("countdown", 4, "multi-rl-level1to2", "multi-base", "multi-rl-level1", by=0.03),
    ),
    Claim(
        "H5",
        "The atoms are a prerequisite: without them RL on strings gains at most 5 points, and stays 5 behind",
        "string-base with RL on levels 1 and 2 fails completely; no figure is given",
        "§4.3, Fig. 4",
        (
            Comparison("countdown", 3, "string-rl-level1to2", "string-base", Rule.AT_MOST, NEXT_TO_NOTHING),
            *_ahead("countdown", 3, "multi-rl-level1to2", "string-rl-level1to2", by=NEXT_TO_NOTHING),
        ),
    ),
    Claim(
        "H6",
        "More samples widen the lead of RL on level 2 over stage1 where problems are deep",
        "levels 3 to 6 widen; level 5: 4 points at k = 1, about 25 at k = 1,024 (the text also says 1,000)",
        "§4.4, Fig. 5",
        tuple(_pass_at(level, "rl-level2", Rule.ABOVE, 0.0, GROWTH) for level in (3, 4, 5, 6)),
    ),
    Claim(
        "H6-closes",
        "… and close it where they are easy: at most 5 points are left, fewer than with one sample",
        "levels 1 and 2: the gap closes, without a figure",
        "§4.4, Fig. 5",
        (
            *(_pass_at(level, "rl-level2", Rule.AT_MOST, NEXT_TO_NOTHING) for level in (1, 2)),
            _pass_at(2, "rl-level2", Rule.AT_MOST, 0.0, GROWTH),
        ),
    ),
    Claim(
        "H6-tracks",
        "… while RL on level 1 stays within 5 points of stage1, however many the samples",
        "tracks the base at almost all levels, without a figure",
        "§4.4, Fig. 5",
        tuple(_pass_at(level, "rl-level1", Rule.WITHIN, NEXT_TO_NOTHING) for level in range(1, 7)),
    ),
    Claim(
        "H7",
        "RL on level 2 changes how answers fail: it no longer ignores the composition (at most 5 %), others do",
        "level 3, by an LLM judge: 0 % after RL on level 2, over 50 % of stage1, RFT and RL on level 1",
        "§4.5, Fig. 6",
        (
            _failing("ignores_composition", "rl-level2", "", Rule.AT_MOST, NEXT_TO_NOTHING),
            *(_failing("ignores_composition", other, "rl-level2") for other in _OTHERS),
        ),
    ),
    Claim(
        "H7-ignore",
        "… and the others do so in more than half of their answers",
        "over 50 % each",
        "§4.5, Fig. 6",
        tuple(_failing("ignores_composition", other, "", Rule.ABOVE, 0.5) for other in _OTHERS),
    ),
    Claim(
        "H7-order",
        "… or compose wrongly, in more than 35 % of them",
        "incorrect composition: over 35 % each",
        "§4.5, Fig. 6",
        tuple(_failing("incorrect_composition", other, "", Rule.ABOVE, 0.35) for other in _OTHERS),
    ),
    Claim(
        "H7-atoms",
        "What still fails after RL on level 2 is a single function: more often than in the others",
        "atomic errors: 55 % after RL on level 2 (28.1 % are correct)",
        "§4.5, Fig. 6",
        tuple(_failing("atomic_error", "rl-level2", other) for other in _OTHERS),
    ),
    Claim(
        "H7-half",
        "… in more than half of its answers",
        "55 %, the largest class",
        "§4.5, Fig. 6",
        (_failing("atomic_error", "rl-level2", "", Rule.ABOVE, 0.5),),
    ),
    Claim(
        "H8",
        "Both are needed, RL and compositions to train on: neither RL on level 1 (H1) nor RFT on level 2 (H3) will do",
        "see H1 and H3",
        "§4.1, §4.2",
        _H1.comparisons + _H3.comparisons,
    ),
    Claim(
        "H9",
        "RL on levels 1 and 2 does as well as on level 2 alone: within 5 points",
        "similarly strong; the figures are not separated",
        "§4.1, Fig. 2",
        tuple(Comparison(*group, "rl-level1to2", "rl-level2", Rule.WITHIN, NEXT_TO_NOTHING) for group in BOTH_AT_3),
    ),
)
CONTROLS = (
    Claim(
        "control-shuffled",
        "Control: RL on level 2 with each step's rewards dealt out at random gains at most 5 points over stage1",
        "not in the paper",
        "",
        _gains("rl-level2-shuffled", *BOTH_AT_3),
    ),
    Claim(
        "control-format",
        "Control: RL on level 2 with a reward for the form of an answer alone gains at most 5 points over stage1",
        "not in the paper",
        "",
        _gains("rl-level2-format", *BOTH_AT_3),
    ),
)
