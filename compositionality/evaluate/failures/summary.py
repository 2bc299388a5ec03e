"""From counts to shares with intervals, problems as clusters."""

from collections.abc import Iterator, Mapping
from typing import Any

from compositionality.evaluate.failures.counts import Counted
from compositionality.evaluate.study import Group
from compositionality.rollout.summary import by_number
from compositionality.stats.intervals import Counts, share
from compositionality.types import FAILURES

Row = dict[str, Any]
ByFile = Mapping[tuple[str, str], Counted]


def summarise(counted: ByFile, judge: Row | None) -> Row:
    """What failure_modes.json holds; shares lie in [0, 1], with 95 % intervals."""
    return {
        "models": list(dict.fromkeys(model for model, _ in counted)),
        "classes": list(FAILURES),
        "shares": [row for key, counts in counted.items() for row in _shares(*key, counts)],
        "faults": [row for key, counts in counted.items() for row in _faults(*key, counts)],
        "composed": [row for key, counts in counted.items() for row in _composed(*key, counts)],
        "by_function": [row for key, counts in counted.items() for row in _functions(*key, counts)],
        "by_pair": [row for key, counts in counted.items() for row in _pairs(*key, counts)],
        "judge": judge,
    }


def _levels(model: str, name: str, counts: Counted) -> Iterator[tuple[Row, list[int]]]:
    """The labels and the problems of every level."""
    members: dict[str, list[int]] = {}
    for problem, source in counts.data_sources.items():
        members.setdefault(source, []).append(problem)
    for source in sorted(members, key=by_number):
        group = Group(name, source)
        labels = {"model": model, "problems": name, "functions": group.functions, "level": group.level}
        yield labels, members[source]


def _shares(model: str, name: str, counts: Counted) -> Iterator[Row]:
    for labels, problems in _levels(model, name, counts):
        responses = counts.responses(problems)
        sizes = {"n_problems": len(problems), "n_responses": int(responses.sum())}
        for kind in FAILURES:
            found = _interval(counts.classes.over(kind, problems), responses, "share")
            yield {**labels, "class": kind, **found, **sizes}


def _faults(model: str, name: str, counts: Counted) -> Iterator[Row]:
    """What exactly was wrong, as shares of all responses; with class *correct*: a right answer after a faulty trace."""
    for labels, problems in _levels(model, name, counts):
        responses = counts.responses(problems)
        for kind, fault in sorted(counts.faults):
            found = _interval(counts.faults.over((kind, fault), problems), responses, "share")
            yield {**labels, "class": kind, "fault": fault, **found}


def _composed(model: str, name: str, counts: Counted) -> Iterator[Row]:
    """Responses that state the functions asked for in their order, whatever they make of the strings."""
    for labels, problems in _levels(model, name, counts):
        yield {**labels, **_interval(counts.composed.over(True, problems), counts.responses(problems), "share")}


def _functions(model: str, name: str, counts: Counted) -> Iterator[Row]:
    """Of the steps at which a function was applied, at any level, how many have a wrong result.

    ``alone``: accuracy on the problems that ask for this function only (None: there are none).
    """
    problems = list(counts.data_sources)
    for function in sorted(counts.reached, key=by_number):
        reached, wrong = counts.reached.over(function, problems), counts.wrong.over(function, problems)
        sizes = {"reached": int(reached.sum()), "wrong": int(wrong.sum())}
        labels = {"model": model, "problems": name, "function": function}
        single = counts.pairs.get((function, None), [])
        alone = share(counts.classes.over("correct", single), counts.responses(single))
        yield {**labels, **sizes, **_interval(wrong, reached, "error_rate"), "alone": alone.value if alone else None}


def _pairs(model: str, name: str, counts: Counted) -> Iterator[Row]:
    """Accuracy on the problems that compose two functions: outer after inner."""
    pairs = {(outer, inner): rows for (outer, inner), rows in counts.pairs.items() if inner is not None}
    for (outer, inner), problems in sorted(pairs.items(), key=lambda pair: [*map(by_number, pair[0])]):
        responses = counts.responses(problems)
        found = _interval(counts.classes.over("correct", problems), responses, "accuracy")
        yield {"model": model, "problems": name, "outer": outer, "inner": inner, "n": int(responses.sum()), **found}


def _interval(counted: Counts, of: Counts, name: str) -> Row:
    found = share(counted, of)
    if found is None:
        return {name: None, "low": None, "high": None}
    return {name: found.value, "low": found.low, "high": found.high}
