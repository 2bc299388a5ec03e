"""One comparison against its threshold, decided by intervals; gates are not asked here.

Every comparison gets two decisions: one for a run with other seeds and other problems, and one for these very seeds
with other problems (``stats.estimate``: the two kinds of interval). A decision is ``undecided`` as long as its
interval holds the threshold; the outcome then holds the sample size that would decide it. ``not run``: an arm, a level
or all results are missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compositionality.evaluate.claims.model import Comparison, Rule
from compositionality.evaluate.results import ProblemSet, Results
from compositionality.evaluate.summary import contrast, share
from compositionality.stats.significance import Needed, needed
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
    by_seed: tuple[Decision, ...] | None = None
    ratios: tuple[float | None, ...] | None = None  # figure of the model / of the base, by seed
    missing: str = ""
    reason: str = ""
    n_problems: int = 0


def compare(comparison: Comparison, results: ByName) -> Outcome:
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
        decision, these_seeds = (
            by_interval(comparison, estimate.interval),
            by_interval(comparison, estimate.over_problems),
        )
        outcome = _with_needs(Outcome(comparison, estimate, decision, these_seeds), [estimate])
    return replace(outcome, n_problems=rows.size(problems))


def _estimate(comparison: Comparison, rows: Results, problems: ProblemSet) -> Estimate | None:
    """Return what is compared with the threshold."""
    if not comparison.base:
        return share(rows, comparison.model, problems, comparison.measure)
    measures = comparison.measure, comparison.base_measure
    return contrast(rows, comparison.model, comparison.base, problems, *measures, comparison.times, comparison.over)


def by_interval(comparison: Comparison, interval: Interval) -> Decision:
    """Decide by the whole interval: on the right side of the threshold, on the wrong side, or neither."""
    low, high, threshold = interval.low, interval.high, comparison.threshold
    holds, fails = low > threshold, high <= threshold
    if comparison.rule is Rule.AT_MOST:
        holds, fails = fails, holds
    elif comparison.rule is Rule.WITHIN:
        holds, fails = -threshold <= low and high <= threshold, low > threshold or high < -threshold
    return Decision.SUPPORTED if holds else Decision.CONTRADICTED if fails else Decision.UNDECIDED


def _with_needs(outcome: Outcome, estimates: Sequence[Estimate]) -> Outcome:
    """Add to an undecided outcome the sample size at which no interval of ``estimates`` would hold the threshold."""
    if outcome.decision is not Decision.UNDECIDED:
        return outcome
    rule, threshold = outcome.comparison.rule, outcome.comparison.threshold
    nearer = [-threshold if rule is Rule.WITHIN and estimate.value < 0 else threshold for estimate in estimates]
    needs = map(needed, estimates, nearer)
    return replace(outcome, needs=tuple(need for need in needs if need))


def all_of(decisions: Sequence[Decision]) -> Decision:
    """Return the decision on what holds only if all its parts hold."""
    for decision in (Decision.CONTRADICTED, Decision.NOT_TESTABLE):
        if decision in decisions:
            return decision
    return decisions[0] if len(set(decisions)) == 1 else Decision.UNDECIDED


def _on_every_seed(comparison: Comparison, rows: Results, problems: ProblemSet, estimate: Estimate) -> Outcome:
    """Decide each seed by its own interval over problems: all must hold, one that does not is enough."""
    alone = [_estimate(comparison, rows.only(seed), problems) for seed in rows.seeds]
    by_seed = tuple(by_interval(comparison, seed.over_problems) if seed else Decision.NOT_RUN for seed in alone)
    undecided = [seed for seed, decision in zip(alone, by_seed, strict=True) if seed and decision is Decision.UNDECIDED]
    shares = [share(rows, arm, problems, comparison.measure) for arm in comparison.arms]
    pairs = zip(*(figure.by_seed for figure in shares if figure), strict=True)
    ratios = tuple(model / base if base else None for model, base in pairs)
    decision = all_of(by_seed)
    return _with_needs(Outcome(comparison, estimate, decision, decision, (), by_seed, ratios), undecided)


def _apart(comparison: Comparison, rows: Results, problems: ProblemSet, estimate: Estimate) -> Outcome:
    """Hold if the model's interval is wholly above the base's, of each kind; fail if the difference is below 0."""
    shares = [share(rows, arm, problems, comparison.measure) for arm in comparison.arms]
    model, base = (figure for figure in shares if figure)  # there is a difference, so there are both

    def apart(upper: Interval, lower: Interval, difference: Interval) -> Decision:
        if upper.low > lower.high:
            return Decision.SUPPORTED
        return Decision.CONTRADICTED if difference.high < 0 else Decision.UNDECIDED

    decision = apart(model.interval, base.interval, estimate.interval)
    these_seeds = apart(model.over_problems, base.over_problems, estimate.over_problems)
    gap = estimate
    if estimate.value > 0:  # both intervals must leave the middle free: their widths add up
        half = sum(arm.high - arm.low for arm in (model, base)) / 2
        ends = Interval(estimate.value - half, estimate.value + half)
        gap = replace(estimate, over_problems=ends, over_seeds=estimate.over_seeds and ends)
    return _with_needs(Outcome(comparison, estimate, decision, these_seeds), [gap])
