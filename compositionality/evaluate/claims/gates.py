"""Gates: could a comparison have come out otherwise? Each tells why not, in one phrase (empty: it could).

A gate that is a comparison itself (a positive control, a premise, assay sensitivity) must be supported by the interval
of the kind that the decision rests on. Headroom, training and what was kept are figures, the same for both kinds.
"""

from collections.abc import Callable, Mapping, Sequence
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
)
from compositionality.evaluate.results import ProblemSet, Results
from compositionality.evaluate.summary import share
from compositionality.types import CORRECT, GROWTH, Decision, Metric, TrainingReport

ByName = Mapping[str, Results]
"""Results by the name that comparisons use (``Comparison.results``)."""
Decisions = tuple[Decision, Decision]
"""For other seeds and problems; for these seeds and other problems."""
Judge = Callable[[Comparison], Decisions]
"""Decides a comparison without its gates."""
DENIALS = (Rule.AT_MOST, Rule.WITHIN)
"""Rules of claims that there is no effect."""


def why_not_testable(
    comparison: Comparison, results: ByName, problems: ProblemSet, judge: Judge, plain: Decision, kind: int
) -> str:
    """Return the phrase of the first gate that fails a comparison that was run, by one ``kind`` of interval.

    An effect that the ``plain`` decision finds, where the claim is that there is none, needs no gate that asks whether
    one could be found.
    """
    effect = comparison.rule in DENIALS and plain is Decision.CONTRADICTED
    gates = [gate for gate in comparison.gates if not (effect and isinstance(gate, Sensitive | Kept))]
    return next(filter(None, (_reason(gate, comparison, results, problems, judge, kind) for gate in gates)), "")


def _reason(gate: Gate, comparison: Comparison, results: ByName, problems: ProblemSet, judge: Judge, kind: int) -> str:
    rows, denial = results[comparison.results], comparison.rule in DENIALS
    match gate:
        case Headroom():
            return _headroom(gate, comparison, rows, problems)
        case Trained():
            return _untrained(gate, comparison, results)
        case Kept() if denial and comparison.base:
            return _lost(gate, comparison, rows)
        case Sensitive() if denial:
            other = replace(
                comparison, model=gate.model, base=gate.base, part=gate.part or comparison.part, base_part="",
                rule=Rule.ABOVE, times=1.0, gates=(),
            )  # fmt: skip
            text, decisions = f"no effect is shown to be possible: {other}", judge(other)
        case Shown():
            run = (each for one in gate.comparisons if (each := judge(one))[0] is not Decision.NOT_RUN)
            text, decisions = f"not shown that {gate.text}", next(run, (Decision.NOT_RUN, Decision.NOT_RUN))
        case _:
            return ""
    return "" if decisions[kind] is Decision.SUPPORTED else f"{text} ({decisions[kind]})"


def _headroom(gate: Headroom, comparison: Comparison, rows: Results, problems: ProblemSet) -> str:
    """Say if a figure above the threshold takes more than can be reached, or both arms are near 0.

    The floor does not count where a gate shows that the study finds an effect on these problems. Failures, and what
    more samples add, are no part of what is right.
    """
    model = _share(rows, comparison.model, problems, comparison.part)
    part = comparison.base_part or comparison.part
    base = _share(rows, comparison.base, problems, part) if comparison.base else 0.0
    of_wrong = comparison.metric is Metric.FAILURES or comparison.part == GROWTH
    room = 1 - _share(rows, comparison.model, problems, CORRECT) if of_wrong else 1.0
    taken, reach = comparison.times * base + comparison.threshold, gate.ceiling * room
    if taken >= reach:
        what = f"more than {_percent(taken)} would be needed of {comparison.model}, {_percent(reach)} is the ceiling"
        return f"no headroom: {what}"
    shown = comparison.rule in DENIALS and any(isinstance(one, Sensitive) for one in comparison.gates)
    if comparison.base and not shown and max(model, base) < gate.floor:
        return f"no headroom: {comparison.model} and {comparison.base} are below {_percent(gate.floor)}"
    return ""


def _lost(gate: Kept, comparison: Comparison, rows: Results) -> str:
    problems = rows.problem_set(comparison.group, gate.level)
    if problems is None:
        return f"{comparison.group} L{gate.level} was not run"
    model, base = (_share(rows, arm, problems, CORRECT) for arm in (comparison.model, comparison.base))
    lost = base - model
    return f"{comparison.model} lost {100 * lost:.0f} points at level {gate.level}" if lost > gate.loss else ""


def _share(rows: Results, arm: str, problems: ProblemSet, part: str) -> float:
    estimate = share(rows, arm, problems, part)
    return estimate.value if estimate else 0.0


def _untrained(gate: Trained, comparison: Comparison, results: ByName) -> str:
    """Say which of the arms that are compared, then of those of the controls, was hardly trained.

    Reports are those of the results that are compared, or else of others: a model that was sampled for pass@k was
    evaluated for accuracy.
    """
    rows = results[comparison.results]
    reports: dict[tuple[str, str], TrainingReport] = {}
    for replicate in (one for each in (rows, *results.values()) for one in each.replicates):
        for arm, report in replicate.training.items():
            reports.setdefault((arm, replicate.name), report)
    controls = [one for other in comparison.gates if isinstance(other, Shown) for one in other.comparisons]
    seeds = [one.name for one in rows.replicates]
    for arm in dict.fromkeys(arm for one in (comparison, *controls) for arm in one.arms):
        known = [reports[arm, seed] for seed in seeds if (arm, seed) in reports]
        if arm not in gate.starts and (reason := _too_little(gate, arm, known, len(seeds))):
            return reason
    return ""


def _too_little(gate: Trained, arm: str, reports: Sequence[TrainingReport], n_seeds: int) -> str:
    """Say what training lacks. Supervised runs (with ``rows``) have neither groups nor signal."""
    updates = [(one.updates - (one.updates_without_signal or 0), one.updates) for one in reports if one.updates]
    if len(updates) < n_seeds:
        return f"{arm}: no report of updates in {n_seeds - len(updates)} of {n_seeds} seeds"
    if any(one.rows == 0 for one in reports):
        return f"{arm} was trained on no rows in a seed"
    fewest = min(signal for signal, _ in updates)
    if fewest < gate.least_updates and any(one.rows is None for one in reports):
        return f"{arm} hardly trained: {fewest} updates with signal in a seed, {gate.least_updates} are needed"
    groups = [
        (one.groups_with_signal, one.groups) for one in reports if one.groups and one.groups_with_signal is not None
    ]
    for what, counts, least in (("updates", updates, gate.updates), ("groups", groups, gate.groups)):
        signal = sum(signal for signal, _ in counts) / sum(n for _, n in counts) if counts else 1.0
        if signal < least:
            return f"{arm} hardly trained: {_percent(signal)} of its {what} had signal, {_percent(least)} are needed"
    return ""


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"
