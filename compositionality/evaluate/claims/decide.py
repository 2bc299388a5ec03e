"""Verdicts on the paper's claims, as the intervals give them.

Every comparison gets two verdicts: one for a run with other seeds and other problems, and one for these very seeds with
other problems (``crossed``: the two kinds of interval). A verdict is ``undecided`` as long as its interval holds the
threshold, and then says what would decide it; ``not run`` where an arm, a level or a whole section is missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from compositionality.evaluate.claims.claim import Claim, Comparison, Rule, Source
from compositionality.evaluate.evaluations import Group, Study
from compositionality.stats.intervals import Interval
from compositionality.stats.random_effects import Finding
from compositionality.stats.sample_size import Need, most, needed

Studies = Mapping[Source, Study]


class Verdict(StrEnum):
    """What an interval says of a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Judged:
    """A comparison with its figures: ``found`` is None if ``missing`` (an arm, a level, a section) was not run."""

    comparison: Comparison
    found: Finding | None = None
    verdict: Verdict = Verdict.NOT_RUN
    these_seeds: Verdict = Verdict.NOT_RUN
    need: Need | None = None  # of an undecided one
    by_seed: tuple[Verdict, ...] | None = None
    ratios: tuple[float | None, ...] | None = None  # figure of the model / of the base, by seed
    missing: str = ""
    n_problems: int = 0


def judge_claim(claim: Claim, studies: Studies) -> list[Judged]:
    """Every comparison of a claim, measured."""
    return [_judge(comparison, studies) for comparison in claim.comparisons]


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim whose comparisons must all hold."""
    if Verdict.CONTRADICTED in verdicts:
        return Verdict.CONTRADICTED
    return verdicts[0] if len(set(verdicts)) == 1 else Verdict.UNDECIDED


def claim_rows(claims: Sequence[Claim], studies: Studies) -> Iterator[dict[str, Any]]:
    """The claims with their comparisons, figures and verdicts, as JSON takes them."""
    for claim in claims:
        judged = judge_claim(claim, studies)
        verdict = together([one.verdict for one in judged])
        yield {
            "claim": claim.name,
            "hypothesis": claim.hypothesis,
            "text": claim.text,
            "paper": claim.paper,
            "source": claim.source,
            "verdict": verdict,
            "verdict_these_seeds": together([one.these_seeds for one in judged]),
            "needs": _needs(judged) if verdict is Verdict.UNDECIDED else None,
            "comparisons": [_row(one) for one in judged],
        }


def _needs(judged: Sequence[Judged]) -> str:
    """What would decide every comparison that is undecided."""
    missing = ", ".join(dict.fromkeys(one.missing for one in judged if one.missing))
    needs = [one.need for one in judged if one.need]
    parts = [most(needs).words] if needs else []
    return " and ".join([*parts, *([f"what was not run ({missing})"] if missing else [])])


def _judge(comparison: Comparison, studies: Studies) -> Judged:
    study = studies.get(comparison.source)
    group = study.group(comparison.functions, comparison.level) if study else None
    if study is None or group is None:
        what = f"{comparison.functions} L{comparison.level}" if study else str(comparison.metric)
        return Judged(comparison, missing=what)
    absent = [arm for arm in comparison.arms if arm not in study.models]
    if absent:
        return Judged(comparison, missing=", ".join(absent))
    found = _found(comparison, study, group)
    if found is None:
        return Judged(comparison, missing="answers that were judged")
    return replace(_decide(comparison, study, group, found), n_problems=study.size(group))


def _found(comparison: Comparison, study: Study, group: Group) -> Finding | None:
    """The figure that is held against the threshold."""
    if not comparison.base:
        return study.share(comparison.model, group, comparison.part)
    return study.contrast(comparison.model, comparison.base, group, comparison.times, comparison.part)


def _decide(comparison: Comparison, study: Study, group: Group, found: Finding) -> Judged:
    if comparison.rule is Rule.EVERY_SEED:
        return _on_every_seed(comparison, study, group, found)
    if comparison.rule is Rule.APART:
        return _apart(comparison, study, group, found)
    best, narrow = (_held_against(comparison, interval) for interval in (found.best, found.narrow))
    return Judged(comparison, found, best, narrow, _need(comparison, found) if best is Verdict.UNDECIDED else None)


def _held_against(comparison: Comparison, interval: Interval) -> Verdict:
    """The whole interval on the right side, on the wrong side, or neither."""
    low, high, threshold = interval.low, interval.high, comparison.threshold
    holds, fails = low > threshold, high <= threshold
    if comparison.rule is Rule.AT_MOST:
        holds, fails = fails, holds
    elif comparison.rule is Rule.WITHIN:
        holds, fails = -threshold <= low and high <= threshold, low > threshold or high < -threshold
    return Verdict.SUPPORTED if holds else Verdict.CONTRADICTED if fails else Verdict.UNDECIDED


def _need(comparison: Comparison, found: Finding) -> Need | None:
    """What would take the threshold out of the interval."""
    value = abs(found.value) if comparison.rule is Rule.WITHIN else found.value
    return needed([found.spread], abs(value - comparison.threshold)) if found.spread else None


def _on_every_seed(comparison: Comparison, study: Study, group: Group, found: Finding) -> Judged:
    """Each seed by its own interval over problems: all must hold, one that does not is enough."""
    alone = [_found(comparison, Study((seed,), study.models, study.groups), group) for seed in study.seeds]
    by_seed = tuple(_held_against(comparison, one.narrow) if one else Verdict.NOT_RUN for one in alone)
    verdict = together(by_seed)
    open_ones = [
        _need(comparison, one)
        for one, its in zip(alone, by_seed, strict=True)
        if one and its is Verdict.UNDECIDED and verdict is Verdict.UNDECIDED
    ]
    needs = [need for need in open_ones if need]
    shares = [study.share(arm, group, comparison.part) for arm in comparison.arms]
    pairs = zip(*(share.values for share in shares if share), strict=True)
    ratios = tuple(mine / base if base else None for mine, base in pairs)
    return Judged(comparison, found, verdict, verdict, most(needs) if needs else None, by_seed, ratios)


def _apart(comparison: Comparison, study: Study, group: Group, found: Finding) -> Judged:
    """The model's interval wholly above the base's, of each kind; not so if the difference is wholly below 0."""
    shares = [study.share(arm, group, comparison.part) for arm in comparison.arms]
    model, base = (share for share in shares if share)  # there is a difference, so there are both

    def verdict(upper: Interval, lower: Interval, difference: Interval) -> Verdict:
        if upper.low > lower.high:
            return Verdict.SUPPORTED
        return Verdict.CONTRADICTED if difference.high < 0 else Verdict.UNDECIDED

    best = verdict(model.best, base.best, found.best)
    spreads = [one.spread for one in ([model, base] if found.value > 0 else [found]) if one.spread]
    need = needed(spreads, abs(found.value)) if spreads and best is Verdict.UNDECIDED else None
    return Judged(comparison, found, best, verdict(model.narrow, base.narrow, found.narrow), need)


def _row(judged: Judged) -> dict[str, Any]:
    comparison, found = judged.comparison, judged.found
    return {
        "comparison": comparison.words,
        "metric": comparison.metric,
        "part": comparison.part,
        "functions": comparison.functions,
        "level": comparison.level,
        "model": comparison.model,
        "base": comparison.base or None,
        "times": comparison.times,
        "rule": comparison.rule,
        "threshold": comparison.threshold,
        "verdict": judged.verdict,
        "verdict_these_seeds": judged.these_seeds,
        "needs": judged.need.words if judged.need else None,
        "missing": judged.missing or None,
        "by_seed": judged.by_seed,
        "ratios": judged.ratios,
        "n_seeds": len(found.values) if found else 0,
        "n_problems": judged.n_problems,
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
