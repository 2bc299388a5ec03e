"""Verdicts on the paper's claims, as the intervals give them.

Every comparison gets two verdicts: one for a run with other seeds and other problems, and one for these very seeds with
other problems (``crossed``: the two kinds of interval). A verdict is ``undecided`` as long as its interval holds the
threshold. A study is held against the claims about its own kind of problems only: strings, or Countdown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from compositionality.data.intervals import Interval
from compositionality.evaluate.claims import CLAIMS, Claim, Comparison, Rule
from compositionality.evaluate.crossed import Finding
from compositionality.evaluate.study import FUNCTION_SETS, Group, Study


class Verdict(StrEnum):
    """What an interval says of a claim."""

    REPLICATES = "replicates"
    FAILS = "does not replicate"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"


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


def claims_about(study: Study) -> list[Claim]:
    """The claims about the study's kind of problems: a table of strings says nothing of Countdown."""
    kinds = {_kind(group.functions) for group in study.groups}
    return [claim for claim in CLAIMS if {_kind(one.functions) for one in claim.comparisons} <= kinds]


def _kind(functions: str) -> str:
    return "strings" if functions in FUNCTION_SETS else functions


def claim_rows(study: Study) -> Iterator[dict[str, Any]]:
    """The claims with their comparisons, figures and verdicts, as JSON takes them."""
    for claim in claims_about(study):
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
