"""Decisions on claims: each comparison against its threshold, by intervals; then gates, p-values and Holm's procedure.

Every comparison gets two decisions, by the two kinds of interval (stats/README.md): for other seeds and problems, and
for these seeds on other problems. ``undecided``: the interval contains the threshold. ``not run``: an arm, a level or
all results are missing. ``not testable``: a gate fails, so that the result could not have been different; gates use
the same kind of interval.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import Any

from compositionality.evaluate.claims.model import EITHER_SIDE, Claim, Comparison, Headroom, Requires, Rule, Trained
from compositionality.evaluate.results import Results
from compositionality.evaluate.summary import columns, contrast, empty_replicates, share
from compositionality.evaluate.table import is_paired
from compositionality.evaluate.types import CORRECT, GROWTH, Decision, Metric
from compositionality.stats.estimate import CONFIDENCE, Estimate, Interval
from compositionality.stats.significance import Needed, corrected, holm, needed, needed_words, p_value
from compositionality.train.training_report import TrainingReport

ByName = Mapping[str, Results]  # results by the name that comparisons use (Comparison.results)
COMPARED = ("metric", "measure", "base_measure", "group", "level", "model", "base", "times", "rule", "threshold")
"""The fields of a comparison in claims.json."""


@dataclass(frozen=True)
class Outcome:
    """A comparison with its estimate and its decisions. The estimate is None if what ``missing`` names was not run."""

    comparison: Comparison
    estimate: Estimate | None = None
    decision: Decision = Decision.NOT_RUN
    these_seeds: Decision = Decision.NOT_RUN
    needs: tuple[Needed, ...] = ()  # seeds or problems that would decide an undecided comparison
    missing: str = ""
    reason: str = ""  # of "not testable"
    n_problems: int = 0


def claim_rows(claims: Sequence[Claim], results: ByName) -> list[dict[str, Any]]:
    """Return the claims with their comparisons, estimates and decisions, as JSON objects."""
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
    apply_holm([row for row in rows if row["primary"]])
    return rows


def decide(claim: Claim, results: ByName) -> list[Outcome]:
    """Decide every comparison of a claim, with its gates; if only some replicates have its arms, by these."""
    arms = {arm for comparison in claim.comparisons for arm in comparison.arms}
    results = {name: rows.with_arms(arms) for name, rows in results.items()}
    cached_compare = cache(partial(compare, results=results))
    other_seeds, these_seeds = (GateCheck(results, cached_compare, these_seeds=kind) for kind in (False, True))
    outcomes = []
    for comparison in claim.comparisons:
        outcome = cached_compare(comparison, n=len(claim.comparisons))
        if outcome.estimate:
            if reason := other_seeds.why_not_testable(outcome):
                outcome = replace(outcome, decision=Decision.NOT_TESTABLE, reason=reason, needs=())
            if these_seeds.why_not_testable(outcome):
                outcome = replace(outcome, these_seeds=Decision.NOT_TESTABLE)
        outcomes.append(outcome)
    return outcomes


def compare(comparison: Comparison, results: ByName, n: int = 1) -> Outcome:
    """Estimate a comparison, one of ``n`` in its claim, and decide it without gates."""
    rows = results.get(comparison.results)
    problems = rows.problem_set(comparison.group, comparison.level) if rows else None
    if rows is None or problems is None:
        return Outcome(comparison, missing=comparison.place if rows else str(comparison.metric))
    comparison = replace(comparison, level=problems.level)
    if absent := [arm for arm in comparison.arms if arm not in rows.arms]:
        return Outcome(comparison, missing=", ".join(absent))
    terms = comparison.measure, comparison.base_measure, comparison.times, comparison.over
    estimate = contrast(rows, comparison.model, comparison.base, problems, *terms)
    untestable = partial(Outcome, comparison, decision=Decision.NOT_TESTABLE, these_seeds=Decision.NOT_TESTABLE)
    if estimate is None and rows.figures is not None:
        return untestable(reason=str(rows.figures.loc[comparison.model, "reason"]))
    if estimate is None:
        arms = comparison.model, comparison.base
        empty = empty_replicates(rows, *arms, problems, comparison.measure)
        if not empty:
            return Outcome(comparison, missing="as many answers that were judged")
        names = [replicate.name for replicate in rows.replicates if replicate.name not in empty]
        remaining = contrast(rows.only(names), *arms, problems, comparison.measure) if names else None
        reason = f"no problem counts in {', '.join(empty)}" + ("; the figure is of the others" if remaining else "")
        return untestable(estimate=remaining, reason=reason, n_problems=rows.size(problems))
    if comparison.rule is Rule.AHEAD:
        model, base = comparison.reference
        gain = contrast(rows, model, base, problems, comparison.measure)
        comparison = replace(comparison, threshold=max(gain.value / 2, 0.0) if gain else 0.0)  # whatever its interval
    kinds = zip((estimate.interval, estimate.over_problems), corrected(estimate, n), strict=True)
    decision, these_seeds = (decide_by_interval(comparison, *intervals) for intervals in kinds)
    need = needed(estimate, _decisive_end(comparison, estimate)) if decision is Decision.UNDECIDED else None
    needs = (need,) if need else ()
    return Outcome(comparison, estimate, decision, these_seeds, needs, n_problems=rows.size(problems))


def decide_by_interval(comparison: Comparison, interval: Interval, wider: Interval | None = None) -> Decision:
    """Decide by the whole interval: supported on the right side of the threshold, contradicted on the wrong side.

    ``wider``, at 1 − 0.05 / n, is used to contradict: one of n comparisons is enough for that (Bonferroni).
    """
    holds, _ = _sides(comparison, interval)
    _, fails = _sides(comparison, wider or interval)
    return Decision.SUPPORTED if holds else Decision.CONTRADICTED if fails else Decision.UNDECIDED


def _sides(comparison: Comparison, interval: Interval) -> tuple[bool, bool]:
    """Return whether the whole interval shows that the comparison holds, and that it fails."""
    (low, high), threshold = interval, comparison.threshold
    within = -threshold <= low and high <= threshold
    if comparison.rule is Rule.WITHIN:
        return within, low > threshold or high < -threshold
    if comparison.rule is Rule.AHEAD:
        return low > 0, high < 0 or within
    above, at_most = low > threshold, high <= threshold
    return (at_most, above) if comparison.rule is Rule.AT_MOST else (above, at_most)


def all_of(decisions: Sequence[Decision]) -> Decision:
    """Combine decisions on parts that must all hold: contradicted wins, then not testable."""
    for decision in (Decision.CONTRADICTED, Decision.NOT_TESTABLE):
        if decision in decisions:
            return decision
    return decisions[0] if len(set(decisions)) == 1 else Decision.UNDECIDED


def _decisive_end(comparison: Comparison, estimate: Estimate) -> float:
    """Return the end of the margin that more samples would separate from the difference first."""
    end = comparison.threshold
    if comparison.rule in EITHER_SIDE:
        end = math.copysign(end, estimate.value)
    return max(0.0, end, key=lambda end: abs(end - estimate.value)) if comparison.rule is Rule.AHEAD else end


@dataclass(frozen=True)
class GateCheck:
    """Checks the gates of the comparisons of one claim, by the intervals for these seeds, or for other seeds too."""

    results: ByName
    compare: Callable[[Comparison], Outcome]  # decides a comparison without its gates
    these_seeds: bool

    def decision(self, outcome: Outcome) -> Decision:
        return outcome.these_seeds if self.these_seeds else outcome.decision

    def why_not_testable(self, outcome: Outcome) -> str:
        """Return the reason of the first failing gate of a comparison that was run; empty if all pass.

        Gates that ask whether an effect could be found are skipped if the claim denies an effect and one is found.
        """
        comparison, reason = outcome.comparison, ""
        denies = comparison.denies and self.decision(outcome) is not Decision.CONTRADICTED
        for gate in comparison.gates:
            match gate:
                case Headroom() if not is_paired(comparison.measure):
                    reason = self.no_headroom(gate, comparison)
                case Trained():
                    reason = self.untrained(gate, comparison)
                case Requires() if denies or gate.only_for == "all":
                    reason = self.not_shown(gate, comparison)
            if reason:
                break
        return reason

    def not_shown(self, gate: Requires, comparison: Comparison) -> str:
        """Return a reason if the required comparison (in the first group that was run) is not supported."""
        outcomes = [self.compare(required) for required in gate.comparisons(comparison)]
        outcome = next((outcome for outcome in outcomes if outcome.decision is not Decision.NOT_RUN), outcomes[-1])
        decision = self.decision(outcome)
        if gate.decided_by == "value" and outcome.estimate:
            decision = decide_by_interval(outcome.comparison, Interval(outcome.estimate.value, outcome.estimate.value))
        if decision is Decision.SUPPORTED:
            return ""
        figure = "" if gate.group else f": {outcome.comparison}"  # with its own group the text is complete
        return f"not shown that {gate.text}{figure} ({decision})"

    def no_headroom(self, gate: Headroom, comparison: Comparison) -> str:
        """Return a reason if the claim needs more than the ceiling, or no arm's interval is above the floor.

        The floor is skipped if a gate asks whether an effect is possible on these problems. Failures, and the gain from
        more samples, have less room: they exclude right answers.
        """
        rows = self.results[comparison.results]
        problems = rows.problem_set(comparison.group, comparison.level)

        def figure(arm: str, measure: str) -> tuple[float, float]:
            """Return the value and the lower end of its interval."""
            estimate = share(rows, arm, problems, measure) if problems and arm else None
            if estimate is None:
                return 0.0, 0.0
            return estimate.value, (estimate.over_problems if self.these_seeds else estimate.interval).low

        model, base = comparison.model, comparison.base
        _, model_low = figure(model, comparison.measure)
        base_value, base_low = figure(base, comparison.base_measure or comparison.measure)
        excludes_right = comparison.metric is Metric.FAILURES or comparison.measure == GROWTH
        room = 1 - figure(model, CORRECT)[0] if excludes_right else 1.0
        threshold = 0.0 if comparison.rule is Rule.AHEAD else comparison.threshold  # with AHEAD: the margin of a tie
        least, reach = comparison.times * base_value + threshold, gate.ceiling * room
        if least >= reach:
            return (
                f"no headroom: more than {_percent(least)} would be needed of {model}, {_percent(reach)} is the ceiling"
            )
        required = [part for part in comparison.gates if isinstance(part, Requires) and part.only_for == "no effect"]
        covered = comparison.denies and any(part.level is None for part in required)
        if base and not covered and max(model_low, base_low) < gate.floor:
            return f"no headroom: neither {model} nor {base} is shown to be above {_percent(gate.floor)}"
        return ""

    def untrained(self, gate: Trained, comparison: Comparison) -> str:
        """Return a reason if one of the compared arms, or of the arms in required comparisons, was hardly trained.

        An arm that made updates and has learnt its level had few groups with signal because it learnt fast. Reports
        come from the compared results, or from others: models sampled for pass@k have theirs in the accuracy results.
        Supervised runs (with ``rows``) have neither groups nor signal.
        """
        rows = self.results[comparison.results]
        reports: dict[tuple[str, str], TrainingReport] = {}
        for replicate in chain.from_iterable(table.replicates for table in reversed([rows, *self.results.values()])):
            reports |= {(arm, replicate.name): report for arm, report in replicate.training.items()}
        seeds, required = [replicate.name for replicate in rows.replicates], [comparison]
        for part in comparison.gates:
            required += part.comparisons(comparison) if isinstance(part, Requires) else []
        for arm in dict.fromkeys(arm for part in required for arm in part.arms if arm not in gate.starts):
            trained = [reports[arm, seed] for seed in seeds if (arm, seed) in reports]
            updates = [(report.updates_with_signal or 0, report.updates) for report in trained if report.updates]
            if len(updates) < len(seeds):
                return f"{arm}: no report of updates in {len(seeds) - len(updates)} of {len(seeds)} seeds"
            if any(report.rows == 0 for report in trained):
                return f"{arm} was trained on no rows in a seed"
            fewest = min(signal for signal, _ in updates)
            if fewest < gate.least_updates and any(report.rows is None for report in trained):
                return f"{arm} hardly trained: {fewest} updates with signal in a seed, {gate.least_updates} are needed"
            groups = [
                (signal, report.groups)
                for report in trained
                if report.groups and (signal := report.groups_with_signal) is not None
            ]
            for unit, counts, least in (("updates", updates, gate.updates), ("groups", groups, gate.groups)):
                rate = sum(signal for signal, _ in counts) / sum(n for _, n in counts) if counts else 1.0
                if rate < least and not self.is_learnt(gate, arm):
                    return (
                        f"{arm} hardly trained: {_percent(rate)} of its {unit} had signal, {_percent(least)} are needed"
                    )
        return ""

    def is_learnt(self, gate: Trained, arm: str) -> bool:
        """Return whether the arm is above ``mastered`` on the level it trained on, or its gain there is supported."""
        if (learnt := gate.learnt) is None:
            return False
        level, rivals = learnt.levels.get(arm, learnt.level), ((learnt.base, 0.0), ("", learnt.mastered))
        for group in learnt.group:
            gains = [
                Comparison(group, level, arm, base, threshold=least, results=learnt.results) for base, least in rivals
            ]
            decisions = [self.decision(self.compare(gain)) for gain in gains]
            if decisions[1] is not Decision.NOT_RUN:
                return Decision.SUPPORTED in decisions
        return False


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def p_of(decision: Decision, outcomes: Sequence[Outcome]) -> float | None:
    """Return the p-value of the decision on a claim; if undecided, the smaller one of the two decisions.

    A claim holds only if all its comparisons do: the largest of their p-values (intersection-union test). One is enough
    to contradict it: the smallest times their number (Bonferroni). None if the claim was not run or is not testable.
    """
    if decision not in (Decision.SUPPORTED, Decision.CONTRADICTED, Decision.UNDECIDED):
        return None
    testable = [outcome for outcome in outcomes if outcome.decision is not Decision.NOT_TESTABLE]
    pairs = [_p_values(item.comparison, item.estimate) if item.estimate else (1.0, 1.0) for item in testable]
    holds, fails = max(p for p, _ in pairs), min(1.0, len(outcomes) * min(p for _, p in pairs))
    return {Decision.SUPPORTED: holds, Decision.CONTRADICTED: fails}.get(decision, min(holds, fails))


def _p_values(comparison: Comparison, estimate: Estimate) -> tuple[float, float]:
    """Return the p-values of the comparison holding and failing; 1 if the estimate is on the other side.

    One-sided for > and ≤, which have a direction; two-sided for rules that can be decided on either side.
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


def apply_holm(rows: Sequence[dict[str, Any]]) -> None:
    """Set ``p_holm`` and ``decision_holm`` (the decision or ``undecided``) of the primary claims, one family.

    A decision, which comes from the 95 % intervals, is kept if p is at most 0.05. So no decision contradicts its
    interval, though a one-sided p of 0.05 could. A claim that was not run or is not testable stays in the family, with
    p = 1.
    """
    adjusted = holm([1.0 if row["p"] is None else row["p"] for row in rows])
    for row, p in zip(rows, adjusted, strict=True):
        is_open = p > 1 - CONFIDENCE and row["decision"] in (Decision.SUPPORTED, Decision.CONTRADICTED)
        row["p_holm"] = None if row["p"] is None else p
        row["decision_holm"] = Decision.UNDECIDED if is_open else row["decision"]


def _row(outcome: Outcome) -> dict[str, Any]:
    comparison, estimate = outcome.comparison, outcome.estimate
    word = verdict(comparison, estimate, outcome.decision)
    return {
        "comparison": f"{comparison}{f' (±{100 * comparison.threshold:.3g}): {word}' if word else ''}",
        **{key: None if (value := getattr(comparison, key)) == "" else value for key in COMPARED},
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


def verdict(comparison: Comparison, estimate: Estimate | None, decision: Decision) -> str | None:
    """Return "ahead", "as good", "behind" or the decision for the rule ``ahead``; None for other rules."""
    if comparison.rule is not Rule.AHEAD:
        return None
    if decision is Decision.CONTRADICTED and estimate:
        within = -comparison.threshold <= estimate.low and estimate.high <= comparison.threshold
        return "as good" if within else "behind"
    return "ahead" if decision is Decision.SUPPORTED else str(decision)


def _needs(outcomes: Sequence[Outcome]) -> str:
    """Return a phrase of what would decide all undecided comparisons."""
    missing = ", ".join(dict.fromkeys(outcome.missing for outcome in outcomes if outcome.missing))
    needs = [need for outcome in outcomes for need in outcome.needs]
    words = [needed_words(needs)] if needs else []
    return " and ".join([*words, *([f"what was not run ({missing})"] if missing else [])])
