"""Gates: could a comparison have come out otherwise? Each says why not, in one phrase (empty: it could).

A required comparison must be supported, and a floor left, by the interval of the kind that the decision rests on. The
ceiling and the reports of training are the same for both kinds.
"""

from collections.abc import Callable, Sequence
from functools import partial

from compositionality.evaluate.claims.compare import ByName, Outcome, by_interval
from compositionality.evaluate.claims.model import (
    ALL,
    NO_EFFECT,
    VALUE,
    Comparison,
    Headroom,
    Learnt,
    Requires,
    Trained,
)
from compositionality.evaluate.measures import is_paired
from compositionality.evaluate.results import Results
from compositionality.evaluate.summary import share
from compositionality.types import CORRECT, GROWTH, Decision, Interval, Metric, TrainingReport

Compare = Callable[[Comparison], Outcome]
"""Decides a comparison without its gates."""


def why_not_testable(comparison: Comparison, results: ByName, compare: Compare, decision: Decision, kind: int) -> str:
    """Return the phrase of the first gate that fails a comparison that was run, by one ``kind`` of interval.

    An effect that the ``decision`` finds, where the claim is that there is none, needs no gate that asks whether one
    could be found.
    """
    rows, denies = results[comparison.results], comparison.denies and decision is not Decision.CONTRADICTED
    for gate in comparison.gates:
        match gate:
            case Headroom() if not is_paired(comparison.measure):
                reason = _no_headroom(gate, comparison, rows, kind)
            case Trained():
                reason = _untrained(gate, comparison, results, partial(_is_learnt, gate.learnt, compare, kind))
            case Requires() if denies or gate.only_for == ALL:
                reason = _not_shown(gate, comparison, compare, kind)
            case _:
                reason = ""
        if reason:
            return reason
    return ""


def _not_shown(gate: Requires, comparison: Comparison, compare: Compare, kind: int) -> str:
    """Say that the required comparison, of several groups the first that was run, is not supported."""
    for required in gate.comparisons(comparison):
        outcome = compare(required)
        if outcome.decision is not Decision.NOT_RUN:
            break
    decision = (outcome.decision, outcome.these_seeds)[kind]
    if gate.decided_by == VALUE and outcome.estimate:
        decision = by_interval(outcome.comparison, Interval(outcome.estimate.value, outcome.estimate.value))
    what = "" if gate.group else f": {outcome.comparison}"  # the text says all of a comparison with a group of its own
    return "" if decision is Decision.SUPPORTED else f"not shown that {gate.text}{what} ({decision})"


def _no_headroom(gate: Headroom, comparison: Comparison, rows: Results, kind: int) -> str:
    """Say if a figure above the threshold takes more than can be reached, or no arm's interval lies above the floor.

    The floor is skipped if a gate asks whether an effect is possible on these problems. Failures, and what more samples
    add, are no part of what is right.
    """

    def figure(arm: str, measure: str) -> tuple[float, float]:
        """Value and low end."""
        problems = rows.problem_set(comparison.group, comparison.level)
        estimate = share(rows, arm, problems, measure) if problems and arm else None
        return (estimate.value, (estimate.low, estimate.over_problems.low)[kind]) if estimate else (0.0, 0.0)

    _, model_low = figure(comparison.model, comparison.measure)
    base, base_low = figure(comparison.base, comparison.base_measure or comparison.measure)
    of_wrong = comparison.metric is Metric.FAILURES or comparison.measure == GROWTH
    room = 1 - figure(comparison.model, CORRECT)[0] if of_wrong else 1.0
    taken, reach = comparison.times * base + comparison.threshold, gate.ceiling * room
    if taken >= reach:
        what = f"more than {_percent(taken)} would be needed of {comparison.model}, {_percent(reach)} is the ceiling"
        return f"no headroom: {what}"
    required = [other for other in comparison.gates if isinstance(other, Requires) and other.only_for == NO_EFFECT]
    asked = comparison.denies and any(other.level is None for other in required)
    if comparison.base and not asked and max(model_low, base_low) < gate.floor:
        neither = f"neither {comparison.model} nor {comparison.base} is shown to be"
        return f"no headroom: {neither} above {_percent(gate.floor)}"
    return ""


def _untrained(gate: Trained, comparison: Comparison, results: ByName, is_learnt: Callable[[str], bool]) -> str:
    """Say which of the arms that are compared, then of those of required comparisons, was hardly trained.

    An arm that made updates and has learnt its level had few groups with signal because it learnt fast. Reports are
    those of the results that are compared, or else of others: a model that was sampled for pass@k was evaluated for
    accuracy.
    """
    rows = results[comparison.results]
    reports: dict[tuple[str, str], TrainingReport] = {}
    for evaluations in (rows, *results.values()):
        for replicate in evaluations.replicates:
            for arm, report in replicate.training.items():
                reports.setdefault((arm, replicate.name), report)
    seeds, required = [replicate.name for replicate in rows.replicates], [comparison]
    for other in comparison.gates:
        required += other.comparisons(comparison) if isinstance(other, Requires) else []
    for arm in dict.fromkeys(arm for other in required for arm in other.arms):
        known = [reports[arm, seed] for seed in seeds if (arm, seed) in reports]
        if arm not in gate.starts and (reason := _too_little(gate, arm, known, len(seeds), is_learnt)):
            return reason
    return ""


def _is_learnt(learnt: Learnt | None, compare: Compare, kind: int, arm: str) -> bool:
    """Whether the arm ends above ``mastered`` on the level that it trained on, or its gain there is shown."""
    if learnt is None:
        return False
    level = learnt.levels.get(arm, learnt.level)
    for group in learnt.group:
        parts = (learnt.base, 0.0), ("", learnt.mastered)
        asked = [Comparison(group, level, arm, base, threshold=least, results=learnt.results) for base, least in parts]
        decisions = [(outcome.decision, outcome.these_seeds)[kind] for outcome in map(compare, asked)]
        if decisions[1] is not Decision.NOT_RUN:
            return Decision.SUPPORTED in decisions
    return False


def _too_little(
    gate: Trained, arm: str, reports: Sequence[TrainingReport], n_seeds: int, is_learnt: Callable[[str], bool]
) -> str:
    """Say what training lacks. Supervised runs (with ``rows``) have neither groups nor signal."""
    updates = [
        (report.updates - (report.updates_without_signal or 0), report.updates) for report in reports if report.updates
    ]
    if len(updates) < n_seeds:
        return f"{arm}: no report of updates in {n_seeds - len(updates)} of {n_seeds} seeds"
    if any(report.rows == 0 for report in reports):
        return f"{arm} was trained on no rows in a seed"
    fewest = min(signal for signal, _ in updates)
    if fewest < gate.least_updates and any(report.rows is None for report in reports):
        return f"{arm} hardly trained: {fewest} updates with signal in a seed, {gate.least_updates} are needed"
    groups = [
        (report.groups_with_signal, report.groups)
        for report in reports
        if report.groups and report.groups_with_signal is not None
    ]
    for what, counts, least in (("updates", updates, gate.updates), ("groups", groups, gate.groups)):
        signal = sum(signal for signal, _ in counts) / sum(n for _, n in counts) if counts else 1.0
        if signal < least and not is_learnt(arm):
            return f"{arm} hardly trained: {_percent(signal)} of its {what} had signal, {_percent(least)} are needed"
    return ""


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"
