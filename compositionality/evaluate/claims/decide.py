"""Decisions on claims, as the intervals of their comparisons give them (``compare``).

``not testable``: a gate of the claim fails (``gates``), so that it could not have come out otherwise.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from compositionality.evaluate.claims.compare import ByName, Outcome, all_of, compare, verdict
from compositionality.evaluate.claims.gates import why_not_testable
from compositionality.evaluate.claims.model import Claim, Comparison, Rule
from compositionality.evaluate.summary import columns
from compositionality.stats.estimate import CONFIDENCE
from compositionality.stats.significance import holm, needed_words, p_value
from compositionality.types import Decision, Estimate


def claim_rows(claims: Sequence[Claim], results: ByName) -> list[dict[str, Any]]:
    """Return the claims with their comparisons, estimates and decisions, as JSON takes them."""
    rows = []
    for claim in claims:
        outcomes = decide(claim, results)
        decision = all_of([outcome.decision for outcome in outcomes])
        reasons = dict.fromkeys(outcome.reason for outcome in outcomes if outcome.reason)
        row = {
            "claim": claim.name,
            "origin": claim.origin,
            "text": claim.text,
            "paper": claim.paper,
            "source": claim.source,
            "decision": decision,
            "decision_these_seeds": all_of([outcome.these_seeds for outcome in outcomes]),
            "reason": "; ".join(reasons) if decision is Decision.NOT_TESTABLE else None,
            "primary": claim.primary,
            "p": p_of(decision, outcomes) if claim.primary else None,
            "p_holm": None,
            "decision_holm": None,
            "needs": _needs(outcomes) if decision is Decision.UNDECIDED else None,
            "comparisons": [_row(outcome) for outcome in outcomes],
        }
        rows.append(row)
    after_holm([row for row in rows if row["primary"]])
    return rows


def decide(claim: Claim, results: ByName) -> list[Outcome]:
    """Decide every comparison of a claim, with its gates; a control of some replicates by these."""
    arms = {arm for comparison in claim.comparisons for arm in comparison.arms}
    results = {name: rows.with_arms(arms) for name, rows in results.items()}
    each_once = cache(partial(compare, results=results))
    outcomes = []
    for comparison in claim.comparisons:
        outcome = each_once(comparison, n=len(claim.comparisons))
        if outcome.estimate:
            why = partial(why_not_testable, outcome.comparison, results, each_once)
            if reason := why(outcome.decision, 0):
                outcome = replace(outcome, decision=Decision.NOT_TESTABLE, reason=reason, needs=())
            if why(outcome.these_seeds, 1):
                outcome = replace(outcome, these_seeds=Decision.NOT_TESTABLE)
        outcomes.append(outcome)
    return outcomes


def p_of(decision: Decision, outcomes: Sequence[Outcome]) -> float | None:
    """Return the p-value of the decision on a claim, or of the nearer one if it is undecided.

    That the claim holds, all its comparisons must show: the largest of their p-values (intersection-union test). That
    it fails, one is enough: the smallest times their number (Bonferroni). None: not run, not testable.
    """
    if decision not in (Decision.SUPPORTED, Decision.CONTRADICTED, Decision.UNDECIDED):
        return None
    testable = [outcome for outcome in outcomes if outcome.decision is not Decision.NOT_TESTABLE]
    pairs = [_p_values(other.comparison, other.estimate) if other.estimate else (1.0, 1.0) for other in testable]
    holds, fails = max(p for p, _ in pairs), min(1.0, len(outcomes) * min(p for _, p in pairs))
    return {Decision.SUPPORTED: holds, Decision.CONTRADICTED: fails}.get(decision, min(holds, fails))


def _p_values(comparison: Comparison, estimate: Estimate) -> tuple[float, float]:
    """p-values that the comparison holds and that it fails; 1 where the estimate says the contrary.

    One-sided for > and ≤, which say a direction; two-sided for rules that may be decided on either side.
    """
    value, threshold = estimate.value, comparison.threshold
    p, within = p_value(estimate, threshold), abs(value) <= threshold
    equal = max(p, p_value(estimate, -threshold)) if within else 1.0
    if comparison.rule is Rule.WITHIN:
        return equal, 1.0 if within else p_value(estimate, math.copysign(threshold, value))
    if comparison.rule is Rule.AHEAD:
        ahead = p_value(estimate, 0.0)
        return (ahead, equal) if value > 0 else (1.0, min(ahead, equal))
    above, below = (p / 2, 1.0) if value > threshold else (1.0, p / 2)
    return (below, above) if comparison.rule is Rule.AT_MOST else (above, below)


def after_holm(rows: Sequence[dict[str, Any]]) -> None:
    """Set ``p_holm`` and ``decision_holm`` (the decision or ``undecided``) of the primary claims, a family.

    A decision, which comes from the 95 % intervals, stays if p is at most 0.05. So none stands beside an interval that
    holds its threshold, though a one-sided p of 0.05 would allow it. A claim that was not run or is not testable stays
    a member of the family, with p = 1.
    """
    adjusted = holm([1.0 if row["p"] is None else row["p"] for row in rows])
    for row, p in zip(rows, adjusted, strict=True):
        open_now = p > 1 - CONFIDENCE and row["decision"] in (Decision.SUPPORTED, Decision.CONTRADICTED)
        row["p_holm"] = None if row["p"] is None else p
        row["decision_holm"] = Decision.UNDECIDED if open_now else row["decision"]


def _needs(outcomes: Sequence[Outcome]) -> str:
    """Return what would decide every comparison that is undecided."""
    missing = ", ".join(dict.fromkeys(outcome.missing for outcome in outcomes if outcome.missing))
    needs = [need for outcome in outcomes for need in outcome.needs]
    words = [needed_words(needs)] if needs else []
    return " and ".join([*words, *([f"what was not run ({missing})"] if missing else [])])


def _row(outcome: Outcome) -> dict[str, Any]:
    comparison, estimate = outcome.comparison, outcome.estimate
    word = verdict(comparison, estimate, outcome.decision)
    return {
        "comparison": f"{comparison}{f' (±{100 * comparison.threshold:.3g}): {word}' if word else ''}",
        "metric": comparison.metric,
        "measure": comparison.measure,
        "base_measure": comparison.base_measure or None,
        "group": comparison.group,
        "level": comparison.level,
        "model": comparison.model,
        "base": comparison.base or None,
        "times": comparison.times,
        "rule": comparison.rule,
        "threshold": comparison.threshold,
        "decision": outcome.decision,
        "verdict": word,
        "decision_these_seeds": outcome.these_seeds,
        "needs": needed_words(outcome.needs) if outcome.needs else None,
        "missing": outcome.missing or None,
        "reason": outcome.reason or None,
        "n_seeds": len(estimate.by_seed) if estimate else 0,
        "n_problems": outcome.n_problems,
        **columns(estimate, "difference"),
    }
