"""Decisions on claims, as the intervals give them.

Every comparison gets two decisions: one for a run with other seeds and other problems, and one for these very seeds
with other problems (``stats.estimate``: the two kinds of interval). A decision is ``undecided`` as long as its
interval holds the threshold; the outcome then holds the sample size that would decide it. ``not testable``: a gate of
the claim fails (``gates``), so that it could not have come out otherwise. ``not run``: an arm, a level or all results
are missing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from compositionality.evaluate.claims.gates import ByName, Decisions, Judge, not_testable
from compositionality.evaluate.claims.model import Claim, Comparison, Rule, where_of, words
from compositionality.evaluate.claims.primary import NOT_PRIMARY, Primary, after_holm
from compositionality.evaluate.results import ProblemSet, Results
from compositionality.evaluate.summary import columns, contrast, share
from compositionality.stats.significance import Needed, needed, needed_words
from compositionality.types import Decision, Estimate, Interval


@dataclass(frozen=True)
class Outcome:
    """A comparison with its estimate (None if what ``missing`` names was not run) and its decisions.

    ``reason``: why it is not testable.
    """

    comparison: Comparison
    estimate: Estimate | None = None
    decision: Decision = Decision.NOT_RUN
    these_seeds: Decision = Decision.NOT_RUN
    needs: tuple[Needed, ...] = ()  # seeds or problems that would decide an undecided one
    by_seed: tuple[Decision, ...] | None = None
    ratios: tuple[float | None, ...] | None = None  # figure of the model / of the base, by seed
    missing: str = ""
    reason: str = ""
    n_problems: int = 0


def decide(claim: Claim, results: ByName, judge: Judge | None = None) -> list[Outcome]:
    """Every comparison of a claim, measured; ``judge`` decides those of the gates."""
    mine = {arm for comparison in claim.comparisons for arm in comparison.arms}
    if any(found.with_arms(mine) is not found for found in results.values()):  # a control of some replicates
        results = {name: found.with_arms(mine) for name, found in results.items()}
        judge = judge_of(results)
    judge = judge or judge_of(results)
    return [_gated(_outcome(comparison, results), results, judge) for comparison in claim.comparisons]


def judge_of(results: ByName) -> Judge:
    """Decides comparisons without their gates, each once."""

    @cache
    def judge(comparison: Comparison) -> Decisions:
        outcome = _outcome(comparison, results)
        return outcome.decision, outcome.these_seeds

    return judge


def decide_all_of(decisions: Sequence[Decision]) -> Decision:
    """The decision on a claim whose comparisons must all hold."""
    for decision in (Decision.CONTRADICTED, Decision.NOT_TESTABLE):
        if decision in decisions:
            return decision
    return decisions[0] if len(set(decisions)) == 1 else Decision.UNDECIDED


def claim_rows(claims: Sequence[Claim], results: ByName) -> Iterator[dict[str, Any]]:
    """The claims with their comparisons, estimates and decisions, as JSON takes them."""
    judge = judge_of(results)
    decided = {claim.name: decide(claim, results, judge) for claim in claims}
    decisions = {name: decide_all_of([one.decision for one in outcomes]) for name, outcomes in decided.items()}
    family = {claim.name: _tested(decisions[claim.name], decided[claim.name]) for claim in claims if claim.primary}
    holm = after_holm(family)
    for claim in claims:
        outcomes, decision = decided[claim.name], decisions[claim.name]
        yield {
            "claim": claim.name,
            "hypothesis": claim.hypothesis,
            "origin": claim.origin,
            "text": claim.text,
            "paper": claim.paper,
            "source": claim.source,
            "decision": decision,
            "decision_these_seeds": decide_all_of([one.these_seeds for one in outcomes]),
            "reason": _reason(outcomes) if decision is Decision.NOT_TESTABLE else None,
            "primary": claim.primary,
            **holm.get(claim.name, NOT_PRIMARY),
            "needs": _needs(outcomes) if decision is Decision.UNDECIDED else None,
            "comparisons": [_row(one) for one in outcomes],
        }


def _needs(outcomes: Sequence[Outcome]) -> str:
    """What would decide every comparison that is undecided."""
    missing = ", ".join(dict.fromkeys(one.missing for one in outcomes if one.missing))
    needs = [need for one in outcomes for need in one.needs]
    parts = [needed_words(needs)] if needs else []
    return " and ".join([*parts, *([f"what was not run ({missing})"] if missing else [])])


def _tested(decision: Decision, outcomes: Sequence[Outcome]) -> Primary:
    testable = [one for one in outcomes if one.decision is not Decision.NOT_TESTABLE]
    return Primary(decision, [(one.comparison, one.estimate) for one in testable], len(outcomes))


def _reason(outcomes: Sequence[Outcome]) -> str:
    """Why a claim is not testable: each reason once."""
    return "; ".join(dict.fromkeys(one.reason for one in outcomes if one.reason))


def _gated(outcome: Outcome, results: ByName, judge: Judge) -> Outcome:
    """The outcome, not testable where a gate fails."""
    comparison = outcome.comparison
    problems = results[comparison.results].problem_set(comparison.group, comparison.level) if outcome.estimate else None
    if problems is None:
        return outcome
    plain = (outcome.decision, outcome.these_seeds)
    reasons = not_testable(comparison, results, problems, judge, plain)
    decision, these_seeds = (Decision.NOT_TESTABLE if why else its for why, its in zip(reasons, plain, strict=True))
    needs = outcome.needs if decision is Decision.UNDECIDED else ()
    return replace(outcome, decision=decision, these_seeds=these_seeds, needs=needs, reason=reasons[0])


def _outcome(comparison: Comparison, results: ByName) -> Outcome:
    found = results.get(comparison.results)
    problems = found.problem_set(comparison.group, comparison.level) if found else None
    if found is None or problems is None:
        return Outcome(comparison, missing=where_of(comparison) if found else str(comparison.metric))
    comparison = replace(comparison, level=problems.level)
    absent = [arm for arm in comparison.arms if arm not in found.arms]
    if absent:
        return Outcome(comparison, missing=", ".join(absent))
    estimate = _estimate(comparison, found, problems)
    if estimate is None and found.figures is not None:
        reason = str(found.figures.loc[comparison.model, "reason"])
        return Outcome(comparison, None, Decision.NOT_TESTABLE, Decision.NOT_TESTABLE, reason=reason)
    if estimate is None:
        return Outcome(comparison, missing="as many answers that were judged")
    return replace(_decided(comparison, found, problems, estimate), n_problems=found.size(problems))


def _estimate(comparison: Comparison, found: Results, problems: ProblemSet) -> Estimate | None:
    """What is compared with the threshold."""
    if not comparison.base:
        return share(found, comparison.model, problems, comparison.part)
    parts = comparison.part, comparison.base_part
    return contrast(found, comparison.model, comparison.base, problems, *parts, comparison.times, comparison.over)


def _decided(comparison: Comparison, found: Results, problems: ProblemSet, estimate: Estimate) -> Outcome:
    if comparison.rule is Rule.EVERY_SEED:
        return _on_every_seed(comparison, found, problems, estimate)
    if comparison.rule is Rule.APART:
        return _apart(comparison, found, problems, estimate)
    decision, these_seeds = (by_interval(comparison, one) for one in (estimate.interval, estimate.over_problems))
    needs = _needed(comparison, [estimate]) if decision is Decision.UNDECIDED else ()
    return Outcome(comparison, estimate, decision, these_seeds, needs)


def by_interval(comparison: Comparison, interval: Interval) -> Decision:
    """The whole interval on the right side of the threshold, on the wrong side, or neither."""
    low, high, threshold = interval.low, interval.high, comparison.threshold
    holds, fails = low > threshold, high <= threshold
    if comparison.rule is Rule.AT_MOST:
        holds, fails = fails, holds
    elif comparison.rule is Rule.WITHIN:
        holds, fails = -threshold <= low and high <= threshold, low > threshold or high < -threshold
    return Decision.SUPPORTED if holds else Decision.CONTRADICTED if fails else Decision.UNDECIDED


def _needed(comparison: Comparison, estimates: Sequence[Estimate]) -> tuple[Needed, ...]:
    """The sample size at which the interval of each no longer holds the threshold."""
    negative = [comparison.rule is Rule.WITHIN and one.value < 0 for one in estimates]
    thresholds = [-comparison.threshold if below else comparison.threshold for below in negative]
    each = [needed(one, threshold) for one, threshold in zip(estimates, thresholds, strict=True)]
    return tuple(need for need in each if need)


def _on_every_seed(comparison: Comparison, found: Results, problems: ProblemSet, estimate: Estimate) -> Outcome:
    """Each seed by its own interval over problems: all must hold, one that does not is enough."""
    alone = [_estimate(comparison, seed, problems) for seed in map(found.only, found.seeds)]
    by_seed = tuple(by_interval(comparison, one.over_problems) if one else Decision.NOT_RUN for one in alone)
    decision = decide_all_of(by_seed)
    undecided = [one for one, its in zip(alone, by_seed, strict=True) if one and its is Decision.UNDECIDED]
    needs = _needed(comparison, undecided) if decision is Decision.UNDECIDED else ()
    figures = [share(found, arm, problems, comparison.part) for arm in comparison.arms]
    pairs = zip(*(figure.by_seed for figure in figures if figure), strict=True)
    ratios = tuple(mine / base if base else None for mine, base in pairs)
    return Outcome(comparison, estimate, decision, decision, needs, by_seed, ratios)


def _apart(comparison: Comparison, found: Results, problems: ProblemSet, estimate: Estimate) -> Outcome:
    """The model's interval wholly above the base's, of each kind; not so if the difference is wholly below 0."""
    figures = [share(found, arm, problems, comparison.part) for arm in comparison.arms]
    model, base = (figure for figure in figures if figure)  # there is a difference, so there are both

    def apart(upper: Interval, lower: Interval, difference: Interval) -> Decision:
        if upper.low > lower.high:
            return Decision.SUPPORTED
        return Decision.CONTRADICTED if difference.high < 0 else Decision.UNDECIDED

    decision = apart(model.interval, base.interval, estimate.interval)
    these_seeds = apart(model.over_problems, base.over_problems, estimate.over_problems)
    gap = estimate
    if estimate.value > 0:  # both intervals must leave the middle free: their widths add up
        half = sum(one.high - one.low for one in (model, base)) / 2
        ends = Interval(estimate.value - half, estimate.value + half)
        gap = replace(estimate, over_problems=ends, over_seeds=estimate.over_seeds and ends)
    needs = _needed(comparison, [gap]) if decision is Decision.UNDECIDED else ()
    return Outcome(comparison, estimate, decision, these_seeds, needs)


def _row(outcome: Outcome) -> dict[str, Any]:
    comparison, estimate = outcome.comparison, outcome.estimate
    return {
        "comparison": words(comparison),
        "metric": comparison.metric,
        "part": comparison.part,
        "base_part": comparison.base_part or None,
        "group": comparison.group,
        "level": comparison.level,
        "model": comparison.model,
        "base": comparison.base or None,
        "times": comparison.times,
        "rule": comparison.rule,
        "threshold": comparison.threshold,
        "decision": outcome.decision,
        "decision_these_seeds": outcome.these_seeds,
        "needs": needed_words(outcome.needs) if outcome.needs else None,
        "missing": outcome.missing or None,
        "reason": outcome.reason or None,
        "by_seed": outcome.by_seed and [str(one) for one in outcome.by_seed],
        "ratios": outcome.ratios,
        "n_seeds": len(estimate.by_seed) if estimate else 0,
        "n_problems": outcome.n_problems,
        **columns(estimate, "difference"),
    }
