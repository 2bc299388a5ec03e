"""Decisions on claims, as the intervals give them.

Every comparison gets two decisions: one for a run with other seeds and other problems, and one for these very seeds
with other problems (``stats.estimate``: the two kinds of interval). A decision is ``undecided`` as long as its
interval holds the threshold; the outcome then holds the sample size that would decide it. ``not testable``: a gate of
the claim fails (``gates``), so that it could not have come out otherwise. ``not run``: an arm, a level or all results
are missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from compositionality.evaluate.claims.gates import ByName, Decisions, Judge, why_not_testable
from compositionality.evaluate.claims.model import Claim, Comparison, Rule
from compositionality.evaluate.results import ProblemSet, Results
from compositionality.evaluate.summary import columns, contrast, share
from compositionality.stats.estimate import CONFIDENCE
from compositionality.stats.significance import Needed, holm, needed, needed_words, p_value
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


def claim_rows(claims: Sequence[Claim], results: ByName) -> list[dict[str, Any]]:
    """Return the claims with their comparisons, estimates and decisions, as JSON takes them."""
    judge, rows = judge_of(results), []
    for claim in claims:
        outcomes = decide(claim, results, judge)
        decision = decide_all_of([one.decision for one in outcomes])
        reasons = dict.fromkeys(one.reason for one in outcomes if one.reason)
        row = {
            "claim": claim.name,
            "hypothesis": claim.hypothesis,
            "origin": claim.origin,
            "text": claim.text,
            "paper": claim.paper,
            "source": claim.source,
            "decision": decision,
            "decision_these_seeds": decide_all_of([one.these_seeds for one in outcomes]),
            "reason": "; ".join(reasons) if decision is Decision.NOT_TESTABLE else None,
            "primary": claim.primary,
            "p": p_of(decision, outcomes) if claim.primary else None,
            "p_holm": None,
            "decision_holm": None,
            "needs": _needs(outcomes) if decision is Decision.UNDECIDED else None,
            "comparisons": [_row(one) for one in outcomes],
        }
        rows.append(row)
    after_holm([row for row in rows if row["primary"]])
    return rows


def decide(claim: Claim, results: ByName, judge: Judge | None = None) -> list[Outcome]:
    """Measure every comparison of a claim; ``judge`` decides those of the gates."""
    arms = {arm for comparison in claim.comparisons for arm in comparison.arms}
    narrowed = {name: rows.with_arms(arms) for name, rows in results.items()}
    if judge is None or any(narrowed[name] is not results[name] for name in results):  # a control of some replicates
        judge = judge_of(narrowed)
    outcomes = []
    for comparison in claim.comparisons:
        outcome = measure(comparison, narrowed)
        if outcome.estimate and (
            problems := narrowed[comparison.results].problem_set(comparison.group, comparison.level)
        ):
            reason, other = (
                why_not_testable(outcome.comparison, narrowed, problems, judge, plain, kind)
                for kind, plain in enumerate((outcome.decision, outcome.these_seeds))
            )
            if reason:
                outcome = replace(outcome, decision=Decision.NOT_TESTABLE, reason=reason, needs=())
            if other:
                outcome = replace(outcome, these_seeds=Decision.NOT_TESTABLE)
        outcomes.append(outcome)
    return outcomes


def judge_of(results: ByName) -> Judge:
    """Return what decides comparisons without their gates, each once."""

    @cache
    def judge(comparison: Comparison) -> Decisions:
        outcome = measure(comparison, results)
        return outcome.decision, outcome.these_seeds

    return judge


def decide_all_of(decisions: Sequence[Decision]) -> Decision:
    """Return the decision on a claim whose comparisons must all hold."""
    for decision in (Decision.CONTRADICTED, Decision.NOT_TESTABLE):
        if decision in decisions:
            return decision
    return decisions[0] if len(set(decisions)) == 1 else Decision.UNDECIDED


def measure(comparison: Comparison, results: ByName) -> Outcome:
    """Estimate a comparison and decide it without its gates."""
    rows = results.get(comparison.results)
    problems = rows.problem_set(comparison.group, comparison.level) if rows else None
    if rows is None or problems is None:
        return Outcome(comparison, missing=comparison.place if rows else str(comparison.metric))
    comparison = replace(comparison, level=problems.level)
    if absent := [arm for arm in comparison.arms if arm not in rows.arms]:
        return Outcome(comparison, missing=", ".join(absent))
    estimate = _estimate(comparison, rows, problems)
    if estimate is None and rows.figures is not None:
        reason = str(rows.figures.loc[comparison.model, "reason"])
        return Outcome(comparison, None, Decision.NOT_TESTABLE, Decision.NOT_TESTABLE, reason=reason)
    if estimate is None:
        return Outcome(comparison, missing="as many answers that were judged")
    if comparison.rule is Rule.EVERY_SEED:
        outcome = _on_every_seed(comparison, rows, problems, estimate)
    elif comparison.rule is Rule.APART:
        outcome = _apart(comparison, rows, problems, estimate)
    else:
        decision = by_interval(comparison, estimate.interval)
        needs = _needed(comparison, [estimate]) if decision is Decision.UNDECIDED else ()
        outcome = Outcome(comparison, estimate, decision, by_interval(comparison, estimate.over_problems), needs)
    return replace(outcome, n_problems=rows.size(problems))


def _estimate(comparison: Comparison, rows: Results, problems: ProblemSet) -> Estimate | None:
    """What is compared with the threshold."""
    if not comparison.base:
        return share(rows, comparison.model, problems, comparison.part)
    parts = comparison.part, comparison.base_part
    return contrast(rows, comparison.model, comparison.base, problems, *parts, comparison.times, comparison.over)


def by_interval(comparison: Comparison, interval: Interval) -> Decision:
    """Decide by the whole interval: on the right side of the threshold, on the wrong side, or neither."""
    low, high, threshold = interval.low, interval.high, comparison.threshold
    holds, fails = low > threshold, high <= threshold
    if comparison.rule is Rule.AT_MOST:
        holds, fails = fails, holds
    elif comparison.rule is Rule.WITHIN:
        holds, fails = -threshold <= low and high <= threshold, low > threshold or high < -threshold
    return Decision.SUPPORTED if holds else Decision.CONTRADICTED if fails else Decision.UNDECIDED


def _needed(comparison: Comparison, estimates: Sequence[Estimate]) -> tuple[Needed, ...]:
    """The sample size at which the interval of each no longer holds the threshold."""
    below = [comparison.rule is Rule.WITHIN and one.value < 0 for one in estimates]
    each = [
        needed(one, -comparison.threshold if negative else comparison.threshold)
        for one, negative in zip(estimates, below, strict=True)
    ]
    return tuple(need for need in each if need)


def _on_every_seed(comparison: Comparison, rows: Results, problems: ProblemSet, estimate: Estimate) -> Outcome:
    """Each seed by its own interval over problems: all must hold, one that does not is enough."""
    alone = [_estimate(comparison, rows.only(seed), problems) for seed in rows.seeds]
    by_seed = tuple(by_interval(comparison, one.over_problems) if one else Decision.NOT_RUN for one in alone)
    decision = decide_all_of(by_seed)
    undecided = [one for one, its in zip(alone, by_seed, strict=True) if one and its is Decision.UNDECIDED]
    needs = _needed(comparison, undecided) if decision is Decision.UNDECIDED else ()
    shares = [share(rows, arm, problems, comparison.part) for arm in comparison.arms]
    pairs = zip(*(figure.by_seed for figure in shares if figure), strict=True)
    ratios = tuple(model / base if base else None for model, base in pairs)
    return Outcome(comparison, estimate, decision, decision, needs, by_seed, ratios)


def _apart(comparison: Comparison, rows: Results, problems: ProblemSet, estimate: Estimate) -> Outcome:
    """The model's interval wholly above the base's, of each kind; not so if the difference is wholly below 0."""
    shares = [share(rows, arm, problems, comparison.part) for arm in comparison.arms]
    model, base = (figure for figure in shares if figure)  # there is a difference, so there are both

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


def p_of(decision: Decision, outcomes: Sequence[Outcome]) -> float | None:
    """Return the p-value of the decision on a claim, or of the nearer one if it is undecided.

    That the claim holds, all its comparisons must show: the largest of their p-values (intersection-union test). That
    it fails, one is enough: the smallest times their number (Bonferroni). None: not run, not testable.
    """
    if decision not in (Decision.SUPPORTED, Decision.CONTRADICTED, Decision.UNDECIDED):
        return None
    testable = [one for one in outcomes if one.decision is not Decision.NOT_TESTABLE]
    each = [_p_values(one.comparison, one.estimate) if one.estimate else (1.0, 1.0) for one in testable]
    holds, fails = max(p for p, _ in each), min(1.0, len(outcomes) * min(p for _, p in each))
    return {Decision.SUPPORTED: holds, Decision.CONTRADICTED: fails}.get(decision, min(holds, fails))


def _p_values(comparison: Comparison, estimate: Estimate) -> tuple[float, float]:
    """Two-sided p-values that the comparison holds and that it fails; 1 where the estimate says the contrary."""
    value, threshold = estimate.value, comparison.threshold
    p = p_value(estimate, threshold)
    if comparison.rule is Rule.WITHIN:
        nearer = p if value > 0 else p_value(estimate, -threshold)
        both = max(p, p_value(estimate, -threshold))
        return (both, 1.0) if abs(value) <= threshold else (1.0, nearer)
    above, below = (p, 1.0) if value > threshold else (1.0, p)
    return (below, above) if comparison.rule is Rule.AT_MOST else (above, below)


def after_holm(rows: Sequence[dict[str, Any]]) -> None:
    """Set ``p_holm`` and ``decision_holm`` (the decision or ``undecided``) of the primary claims, a family.

    A claim that was not run or is not testable stays a member of it, with p = 1.
    """
    adjusted = holm([1.0 if row["p"] is None else row["p"] for row in rows])
    for row, p in zip(rows, adjusted, strict=True):
        open_now = p > 1 - CONFIDENCE and row["decision"] in (Decision.SUPPORTED, Decision.CONTRADICTED)
        row["p_holm"] = None if row["p"] is None else p
        row["decision_holm"] = Decision.UNDECIDED if open_now else row["decision"]


def _needs(outcomes: Sequence[Outcome]) -> str:
    """What would decide every comparison that is undecided."""
    missing = ", ".join(dict.fromkeys(one.missing for one in outcomes if one.missing))
    needs = [need for one in outcomes for need in one.needs]
    parts = [needed_words(needs)] if needs else []
    return " and ".join([*parts, *([f"what was not run ({missing})"] if missing else [])])


def _row(outcome: Outcome) -> dict[str, Any]:
    comparison, estimate = outcome.comparison, outcome.estimate
    return {
        "comparison": str(comparison),
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
