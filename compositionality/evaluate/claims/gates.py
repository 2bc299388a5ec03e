"""Gates: could a comparison have come out otherwise? Each tells why not, in one phrase (empty: it could).

A gate that is a comparison itself (a positive control, a premise, assay sensitivity) must be supported by the interval
of the kind that the decision rests on. Headroom, training and what was kept are figures, the same for both kinds.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from compositionality.evaluate.claims.model import (
    Comparison,
    Gate,
    Headroom,
    Kept,
    Rule,
    Sensitive,
    Shown,
    Trained,
    words,
)
from compositionality.evaluate.results import ProblemSet, Results
from compositionality.evaluate.summary import share
from compositionality.types import GROWTH, Decision, Metric, TrainingReport

ByName = Mapping[str, Results]
"""Results by the name that comparisons use (``Comparison.results``)."""
Decisions = tuple[Decision, Decision]
"""For other seeds and problems; for these seeds and other problems."""
Judge = Callable[[Comparison], Decisions]
"""Decides a comparison without its gates."""
DENIALS = (Rule.AT_MOST, Rule.WITHIN)
"""Rules of claims that there is no effect."""


def not_testable(
    comparison: Comparison, results: ByName, problems: ProblemSet, judge: Judge, plain: Decisions
) -> tuple[str, str]:
    """Why a comparison that was run is not testable, for either kind of interval: the first gate that fails.

    An effect that the ``plain`` decision finds, where the claim is that there is none, needs no gate that asks whether
    one could be found.
    """
    each = [(gate, _reasons(gate, comparison, results, problems, judge)) for gate in comparison.gates]

    def first(kind: int) -> str:
        found = comparison.rule in DENIALS and plain[kind] is Decision.CONTRADICTED
        asked = (of[kind] for gate, of in each if not (found and isinstance(gate, Sensitive | Kept)))
        return next(filter(None, asked), "")

    return first(0), first(1)


def _reasons(
    gate: Gate, comparison: Comparison, results: ByName, problems: ProblemSet, judge: Judge
) -> tuple[str, str]:
    found = results[comparison.results]
    match gate:
        case Headroom():
            reason = _headroom(gate, comparison, found, problems)
        case Trained():
            reason = next(_untrained(gate, comparison, results), "")
        case Kept():
            reason = _lost(gate, comparison, found)
        case Shown():
            return _not_shown(gate, judge)
        case Sensitive():
            return _insensitive(gate, comparison, judge) if comparison.rule in DENIALS else ("", "")
    return reason, reason


def _headroom(gate: Headroom, comparison: Comparison, found: Results, problems: ProblemSet) -> str:
    """What a figure above the threshold takes lies below what can be reached; not both arms are near 0.

    The floor does not count where a gate shows that the study finds an effect on these problems.
    """
    model = _share(found, comparison.model, problems, comparison.part)
    part = comparison.base_part or comparison.part
    base = _share(found, comparison.base, problems, part) if comparison.base else 0.0
    taken, reach = comparison.times * base + comparison.threshold, gate.ceiling * _room(comparison, found, problems)
    if taken >= reach:
        what = f"more than {_percent(taken)} would be needed of {comparison.model}, {_percent(reach)} is the ceiling"
        return f"no headroom: {what}"
    shown = comparison.rule in DENIALS and any(isinstance(one, Sensitive) for one in comparison.gates)
    if comparison.base and not shown and max(model, base) < gate.floor:
        return f"no headroom: {comparison.model} and {comparison.base} are below {_percent(gate.floor)}"
    return ""


def _room(comparison: Comparison, found: Results, problems: ProblemSet) -> float:
    """The largest figure that a model could have: failures, and what more samples add, are no part of what is right."""
    of_wrong = comparison.metric is Metric.FAILURES or comparison.part == GROWTH
    return 1 - _share(found, comparison.model, problems, "correct") if of_wrong else 1.0


def _share(found: Results, arm: str, problems: ProblemSet, part: str) -> float:
    estimate = share(found, arm, problems, part)
    return estimate.value if estimate else 0.0


def _untrained(gate: Trained, comparison: Comparison, results: ByName) -> Iterator[str]:
    """Of the arms that are compared, then of those of the controls."""
    seeds = [one.name for one in results[comparison.results].replicates]
    controls = [one for its in comparison.gates if isinstance(its, Shown) for one in its.comparisons]
    for arm in dict.fromkeys(arm for one in (comparison, *controls) for arm in one.arms):
        if arm not in gate.starts:
            reports = [_report(arm, seed, comparison.results, results) for seed in seeds]
            yield from _too_little(gate, arm, [one for one in reports if one], len(seeds))


def _report(arm: str, seed: str, where: str, results: ByName) -> TrainingReport | None:
    """Of the results that are compared, or else of others: a model sampled for pass@k was evaluated for accuracy."""
    sections = [results[where], *results.values()]
    seeds = (one for found in sections for one in found.replicates if one.name == seed)
    return next((one.training[arm] for one in seeds if arm in one.training), None)


def _too_little(gate: Trained, arm: str, reports: list[TrainingReport], n_seeds: int) -> Iterator[str]:
    """Supervised runs (with ``rows``) have neither groups nor signal: they need updates and rows."""
    updates = [(one.updates - (one.updates_without_signal or 0), one.updates) for one in reports if one.updates]
    if len(updates) < n_seeds:
        yield f"{arm}: no report of updates in {n_seeds - len(updates)} of {n_seeds} seeds"
        return
    if any(one.rows == 0 for one in reports):
        yield f"{arm} was trained on no rows in a seed"
    fewest = min(signal for signal, _ in updates)
    if fewest < gate.least_updates and any(one.rows is None for one in reports):
        yield f"{arm} hardly trained: {fewest} updates with signal in a seed, {gate.least_updates} are needed"
    groups = [(one.groups_with_signal, one.groups) for one in reports if one.groups]
    known = [(signal, every) for signal, every in groups if signal is not None]
    for what, counts, least in (("updates", updates, gate.updates), ("groups", known, gate.groups)):
        share = sum(signal for signal, _ in counts) / sum(every for _, every in counts) if counts else 1.0
        if share < least:
            yield f"{arm} hardly trained: {_percent(share)} of its {what} had signal, {_percent(least)} are needed"


def _lost(gate: Kept, comparison: Comparison, found: Results) -> str:
    if not (comparison.base and comparison.rule in DENIALS):
        return ""
    problems = found.problem_set(comparison.group, gate.level)
    if problems is None:
        return f"{comparison.group} L{gate.level} was not run"
    model, base = (_share(found, arm, problems, "correct") for arm in comparison.arms)
    lost = base - model
    return f"{comparison.model} lost {100 * lost:.0f} points at level {gate.level}" if lost > gate.loss else ""


def _not_shown(gate: Shown, judge: Judge) -> tuple[str, str]:
    decisions = (judge(one) for one in gate.comparisons)
    run = next((found for found in decisions if found[0] is not Decision.NOT_RUN), (Decision.NOT_RUN,) * 2)
    return _unless_supported(f"not shown that {gate.text}", run)


def _insensitive(gate: Sensitive, comparison: Comparison, judge: Judge) -> tuple[str, str]:
    part = gate.part or comparison.part
    other = replace(
        comparison, model=gate.model, base=gate.base, part=part, base_part="", rule=Rule.ABOVE, times=1.0, gates=()
    )  # fmt: skip
    return _unless_supported(f"no effect is shown to be possible: {words(other)}", judge(other))


def _unless_supported(text: str, decisions: Decisions) -> tuple[str, str]:
    first, second = ("" if one is Decision.SUPPORTED else f"{text} ({one})" for one in decisions)
    return first, second


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"
