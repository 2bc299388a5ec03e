"""Shares of failure classes with intervals (problems as clusters), and how far a judge model agrees."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compositionality.console import natural_key
from compositionality.data.artefact import verify
from compositionality.data.parquet import read_table
from compositionality.evaluate.evaluations import Group
from compositionality.evaluate.failures.judge import COLUMNS, MALFORMED
from compositionality.evaluate.failures.labels import Counted
from compositionality.stats.intervals import CONFIDENCE, Counts, share
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
    for source in sorted(members, key=natural_key):
        group = Group(name, source)
        labels = {"model": model, "problems": name, "functions": group.functions, "level": group.level}
        labels["data_source"] = source
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
    for function in sorted(counts.reached, key=natural_key):
        reached, wrong = counts.reached.over(function, problems), counts.wrong.over(function, problems)
        sizes = {"reached": int(reached.sum()), "wrong": int(wrong.sum())}
        labels = {"model": model, "problems": name, "function": function}
        single = counts.pairs.get((function, None), [])
        alone = share(counts.classes.over("correct", single), counts.responses(single))
        yield {**labels, **sizes, **_interval(wrong, reached, "error_rate"), "alone": alone.value if alone else None}


def _pairs(model: str, name: str, counts: Counted) -> Iterator[Row]:
    """Accuracy on the problems that compose two functions: outer after inner."""
    pairs = {(outer, inner): rows for (outer, inner), rows in counts.pairs.items() if inner is not None}
    for (outer, inner), problems in sorted(pairs.items(), key=lambda pair: [*map(natural_key, pair[0])]):
        responses = counts.responses(problems)
        found = _interval(counts.classes.over("correct", problems), responses, "accuracy")
        yield {"model": model, "problems": name, "outer": outer, "inner": inner, "n": int(responses.sum()), **found}


def _interval(counted: Counts, of: Counts, name: str) -> Row:
    found = share(counted, of)
    if found is None:
        return {name: None, "low": None, "high": None}
    return {name: found.value, "low": found.low, "high": found.high}


DRAWS = 2000


def agreement(judged: Path) -> dict[str, Any]:
    """Figures of judge.parquet; malformed answers are counted and left out of the rest. None: undefined."""
    made = verify(judged)
    rows = read_table(judged, COLUMNS.names).to_pandas()
    valid = rows[rows["judge"] != MALFORMED]
    clusters = valid.groupby(["problems", "problem"], sort=True).ngroup().to_numpy(np.int64)
    numbers = [valid[name].map(FAILURES.index).to_numpy(np.int64) for name in ("program", "judge")]
    tables = np.zeros((int(clusters.max(initial=-1)) + 1, len(FAILURES), len(FAILURES)), np.int64)
    np.add.at(tables, (clusters, *numbers), 1)
    whole = tables.sum(0)
    same = float(np.trace(whole) / len(valid)) if len(valid) else None
    found = {"model": made.settings["judge"], "n": len(valid), "malformed": len(rows) - len(valid), "agreement": same}
    return {**found, **dict(zip(("kappa", "low", "high"), kappa_with_interval(tables), strict=True))}


def kappa(tables: NDArray[Any]) -> NDArray[np.float64]:
    """Cohen's kappa of contingency tables (…, K, K), (…): agreement beyond chance; nan where chance alone agrees."""
    n = tables.sum((-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = np.trace(tables, axis1=-2, axis2=-1) / n
        chance = (tables.sum(-1) * tables.sum(-2)).sum(-1) / n**2
        found: NDArray[np.float64] = (observed - chance) / (1 - chance)
    return np.where(np.isfinite(found), found, np.nan)


def kappa_with_interval(tables: Counts) -> tuple[float | None, float | None, float | None]:
    """Kappa of the summed tables of C problems (C, K, K), and the 95 % interval of a bootstrap over problems."""
    n = len(tables)
    value = float(kappa(tables.sum(0))) if n else np.nan
    if np.isnan(value):
        return None, None, None
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)  # (D, C)
    drawn = kappa((weights @ tables.reshape(n, -1)).reshape(-1, *tables.shape[1:]))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail])
    return value, float(low), float(high)
