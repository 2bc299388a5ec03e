"""One comparison against its threshold, decided by intervals; gates are not asked here.

Every comparison gets two decisions: one for a run with other seeds and other problems, and one for these very seeds
with other problems (``stats.estimate``: the two kinds of interval). A decision is ``undecided`` as long as its
interval holds the threshold; the outcome then holds the sample size that would decide it. One of n comparisons is
enough to contradict a claim, so its interval at 1 − 0.05 / n must (Bonferroni). ``not run``: an arm, a level or all
results are missing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compositionality.evaluate.claims.model import EITHER_SIDE, Comparison, Rule
from compositionality.evaluate.measures import is_paired
from compositionality.evaluate.results import ProblemSet, Results
from compositionality.evaluate.summary import contrast, share
from compositionality.stats.significance import Needed, corrected, needed
from compositionality.types import Decision, Estimate, Interval

ByName = Mapping[str, Results]
"""Results by the name that comparisons use (``Comparison.results``)."""


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
    missing: str = ""
    reason: str = ""
    n_problems: int = 0


def compare(comparison: Comparison, results: ByName, n: int = 1) -> Outcome:
    """Estimate a comparison, one of ``n`` of its claim, and decide it without its gates."""
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
    if comparison.rule is Rule.AHEAD:
        model, base = comparison.reference
        gain = contrast(rows, model, base, problems, comparison.measure)
        comparison = replace(comparison, threshold=max(gain.value / 2, 0.0) if gain else 0.0)
    kinds = zip((estimate.interval, estimate.over_problems), corrected(estimate, n), strict=True)
    decision, these_seeds = (by_interval(comparison, *intervals) for intervals in kinds)
    return _with_needs(Outcome(comparison, estimate, decision, these_seeds, n_problems=rows.size(problems)), estimate)


def _estimate(comparison: Comparison, rows: Results, problems: ProblemSet) -> Estimate | None:
    """Return what is compared with the threshold."""
    if not comparison.base or is_paired(comparison.measure):
        return share(rows, comparison.model, problems, comparison.measure, comparison.base)
    measures = comparison.measure, comparison.base_measure
    return contrast(rows, comparison.model, comparison.base, problems, *measures, comparison.times, comparison.over)


def by_interval(comparison: Comparison, interval: Interval, wider: Interval | None = None) -> Decision:
    """Decide by the whole interval: on the right side of the threshold, ``wider`` on the wrong side, or neither."""
    holds, _ = _sides(comparison, interval)
    _, fails = _sides(comparison, wider or interval)
    return Decision.SUPPORTED if holds else Decision.CONTRADICTED if fails else Decision.UNDECIDED


def _sides(comparison: Comparison, interval: Interval) -> tuple[bool, bool]:
    """Return whether the whole interval says that the comparison holds, and that it fails."""
    (low, high), threshold = interval, comparison.threshold
    within = -threshold <= low and high <= threshold
    if comparison.rule is Rule.WITHIN:
        return within, low > threshold or high < -threshold
    if comparison.rule is Rule.AHEAD:
        return low > 0, high < 0 or within
    above, at_most = low > threshold, high <= threshold
    return (at_most, above) if comparison.rule is Rule.AT_MOST else (above, at_most)


def verdict(comparison: Comparison, estimate: Estimate | None, decision: Decision) -> str | None:
    """Return ahead, as good, behind or the decision of the rule ``ahead``; of another rule None."""
    if comparison.rule is not Rule.AHEAD:
        return None
    if decision is Decision.CONTRADICTED and estimate:
        return (
            "as good" if -comparison.threshold <= estimate.low and estimate.high <= comparison.threshold else "behind"
        )
    return "ahead" if decision is Decision.SUPPORTED else str(decision)


def _with_needs(outcome: Outcome, estimate: Estimate) -> Outcome:
    """Add to an undecided outcome the sample size at which the interval would not hold the threshold."""
    if outcome.decision is not Decision.UNDECIDED:
        return outcome
    rule, end = outcome.comparison.rule, outcome.comparison.threshold
    if rule in EITHER_SIDE:
        end = math.copysign(end, estimate.value)
    if rule is Rule.AHEAD:  # the end that is farther shows sooner on which side of it the difference lies
        end = max(0.0, end, key=lambda end: abs(end - estimate.value))
    need = needed(estimate, end)
    return replace(outcome, needs=(need,) if need else ())


def all_of(decisions: Sequence[Decision]) -> Decision:
    """Return the decision on what holds only if all its parts hold."""
    for decision in (Decision.CONTRADICTED, Decision.NOT_TESTABLE):
        if decision in decisions:
            return decision
    return decisions[0] if len(set(decisions)) == 1 else Decision.UNDECIDED
