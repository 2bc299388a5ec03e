"""The paper's claims as data, and verdicts that the intervals give.

Every comparison gets two verdicts: one for a run with other seeds and other problems, and one for these very seeds with
other problems (``crossed``: the two kinds of interval). A verdict is ``undecided`` as long as its interval holds the
threshold. Paper: Yuan, Chen et al., arXiv 2509.25123; its test problems are compositions of held-out functions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from compositionality.data.intervals import Interval
from compositionality.evaluate.crossed import Finding
from compositionality.evaluate.study import Group, Study

NEXT_TO_NOTHING = 0.05
"""A gain up to 5 points counts as none ("does not generalise", "fails")."""


class Verdict(StrEnum):
    """What an interval says of a claim."""

    REPLICATES = "replicates"
    FAILS = "does not replicate"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"


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
)


@dataclass(frozen=True)
class Judged:
    """A comparison with its figures: ``contrast`` is None if an arm or a level is not in the study."""

    comparison: Comparison
    contrast: Finding | None = None
    verdict: Verdict = Verdict.NOT_MEASURED
    these_seeds: Verdict = Verdict.NOT_MEASURED
    by_seed: tuple[Verdict, ...] | None = None
    ratios: tuple[float | None, ...] | None = None  # accuracy of the model / of the base, by seed


def judge_claim(claim: Claim, study: Study) -> list[Judged]:
    """Every comparison of a claim, measured."""
    return [_judge(comparison, study) for comparison in claim.comparisons]


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim whose comparisons must all hold."""
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    return verdicts[0] if len(set(verdicts)) == 1 else Verdict.UNDECIDED


def claim_rows(study: Study, claims: Sequence[Claim] = CLAIMS) -> Iterator[dict[str, Any]]:
    """The claims with their comparisons, figures and verdicts, as JSON takes them."""
    for claim in claims:
        judged = judge_claim(claim, study)
        yield {
            "claim": claim.name,
            "text": claim.text,
            "paper": claim.paper,
            "verdict": together([one.verdict for one in judged]),
            "verdict_these_seeds": together([one.these_seeds for one in judged]),
            "comparisons": [_row(one) for one in judged],
        }


def _judge(comparison: Comparison, study: Study) -> Judged:
    group = study.group(comparison.functions, comparison.level)
    if group is None or not {comparison.model, comparison.base} <= set(study.models):
        return Judged(comparison)
    contrast = study.contrast(comparison.model, comparison.base, group, comparison.times)
    if contrast is None:
        return Judged(comparison)
    if comparison.rule is Rule.EVERY_SEED:
        return _on_every_seed(comparison, study, group, contrast)
    if comparison.rule is Rule.APART:
        best, narrow = _apart(comparison, study, group, contrast)
    else:
        best, narrow = (_held_against(comparison, interval) for interval in (contrast.best, contrast.narrow))
    return Judged(comparison, contrast, best, narrow)


def _held_against(comparison: Comparison, interval: Interval) -> Verdict:
    """The whole interval on the right side, on the wrong side, or neither."""
    above, below = interval.low > comparison.threshold, interval.high <= comparison.threshold
    if comparison.rule is Rule.AT_MOST:
        above, below = interval.high <= comparison.threshold, interval.low > comparison.threshold
    return Verdict.REPLICATES if above else Verdict.FAILS if below else Verdict.UNDECIDED


def _on_every_seed(comparison: Comparison, study: Study, group: Group, contrast: Finding) -> Judged:
    """Each seed by its own interval over problems: all must hold, one that does not is enough."""
    alone = (Study((seed,), study.models, study.groups) for seed in study.seeds)
    found = [one.contrast(comparison.model, comparison.base, group, comparison.times) for one in alone]
    by_seed = tuple(_held_against(comparison, seed.narrow) if seed else Verdict.NOT_MEASURED for seed in found)
    shares = (study.share(comparison.model, group), study.share(comparison.base, group))
    pairs = zip(*(share.values for share in shares if share), strict=True)
    ratios = tuple(mine / base if base else None for mine, base in pairs)
    return Judged(comparison, contrast, together(by_seed), together(by_seed), by_seed, ratios)


def _apart(comparison: Comparison, study: Study, group: Group, contrast: Finding) -> Iterator[Verdict]:
    """Of each kind of interval: the model's wholly above the base's; not if the difference is wholly below 0."""
    model, base = study.share(comparison.model, group), study.share(comparison.base, group)
    for kind in ("best", "narrow"):
        upper, lower = getattr(model, kind, None), getattr(base, kind, None)
        if upper is None or lower is None:
            yield Verdict.NOT_MEASURED
        elif upper.low > lower.high:
            yield Verdict.REPLICATES
        else:
            yield Verdict.FAILS if getattr(contrast, kind).high < 0 else Verdict.UNDECIDED


def _row(judged: Judged) -> dict[str, Any]:
    comparison, found = judged.comparison, judged.contrast
    return {
        "comparison": comparison.words,
        "functions": comparison.functions,
        "level": comparison.level,
        "model": comparison.model,
        "base": comparison.base,
        "times": comparison.times,
        "rule": comparison.rule,
        "threshold": comparison.threshold,
        "verdict": judged.verdict,
        "verdict_these_seeds": judged.these_seeds,
        "by_seed": judged.by_seed,
        "ratios": judged.ratios,
        **figures_of(found, "difference"),
    }


def figures_of(found: Finding | None, value: str) -> dict[str, Any]:
    """The columns of a figure: its mean over the seeds, both intervals and each seed's value."""
    columns = (value, "low", "high", "interval", "problems_low", "problems_high", "values")
    if found is None:
        return dict.fromkeys(columns)
    best, narrow = found.best, found.narrow
    figures = (found.value, best.low, best.high, found.kind, narrow.low, narrow.high, list(found.values))
    return dict(zip(columns, figures, strict=True))
