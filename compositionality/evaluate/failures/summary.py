"""Shares of failure classes with intervals (problems as clusters), and how far a judge model agrees."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compositionality.console import natural_key
from compositionality.data.artefact import verify
from compositionality.data.parquet import read_table
from compositionality.evaluate.counts import Stratum
from compositionality.evaluate.failures.judge import COLUMNS, MALFORMED
from compositionality.evaluate.failures.labels import LabelCounts
from compositionality.evaluate.frames import columns
from compositionality.stats.estimate import CONFIDENCE, Counts, over_problems
from compositionality.types import FAILURES

Row = dict[str, Any]
ByFile = Mapping[tuple[str, str], LabelCounts]


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


def _levels(model: str, name: str, counts: LabelCounts) -> Iterator[tuple[Row, list[int]]]:
    """The labels and the problems of every group and level."""
    members: dict[Stratum, list[int]] = {}
    for problem, stratum in counts.strata.items():
        members.setdefault(stratum, []).append(problem)
    for stratum in sorted(members):
        yield {"model": model, "problems": name, **stratum._asdict()}, members[stratum]


def _shares(model: str, name: str, counts: LabelCounts) -> Iterator[Row]:
    for labels, problems in _levels(model, name, counts):
        responses = counts.responses(problems)
        sizes = {"n_problems": len(problems), "n_responses": int(responses.sum())}
        clusters = counts.cluster_numbers(problems)
        for kind in FAILURES:
            found = _interval(counts.classes.over(kind, problems), responses, "share", clusters)
            yield {**labels, "class": kind, **found, **sizes}


def _faults(model: str, name: str, counts: LabelCounts) -> Iterator[Row]:
    """What exactly was wrong, as shares of all responses; with class *correct*: a right answer after a faulty trace."""
    for labels, problems in _levels(model, name, counts):
        responses = counts.responses(problems)
        for kind, fault in sorted(counts.faults):
            found = _interval(counts.faults.over((kind, fault), problems), responses, "share")
            yield {**labels, "class": kind, "fault": fault, **found}


def _composed(model: str, name: str, counts: LabelCounts) -> Iterator[Row]:
    """Responses that state the problem's functions in their order, whatever they make of the strings."""
    for labels, problems in _levels(model, name, counts):
        clusters = counts.cluster_numbers(problems)
        yield {
            **labels,
            **_interval(counts.composed.over(True, problems), counts.responses(problems), "share", clusters),
        }


def _functions(model: str, name: str, counts: LabelCounts) -> Iterator[Row]:
    """Of the steps at which a function was applied, at any level, how many have a wrong result.

    ``alone``: accuracy on the problems that ask for this function only (None: there are none).
    """
    problems = list(counts.strata)
    for function in sorted(counts.reached, key=natural_key):
        reached, wrong = counts.reached.over(function, problems), counts.wrong.over(function, problems)
        sizes = {"reached": int(reached.sum()), "wrong": int(wrong.sum())}
        labels = {"model": model, "problems": name, "function": function}
        single = counts.pairs.get((function, None), [])
        alone = over_problems(counts.classes.over("correct", single), counts.responses(single))
        yield {**labels, **sizes, **_interval(wrong, reached, "error_rate"), "alone": alone.value if alone else None}


def _pairs(model: str, name: str, counts: LabelCounts) -> Iterator[Row]:
    """Accuracy on the problems that compose two functions: outer after inner."""
    pairs = {(outer, inner): rows for (outer, inner), rows in counts.pairs.items() if inner is not None}
    for (outer, inner), problems in sorted(pairs.items(), key=lambda pair: [*map(natural_key, pair[0])]):
        responses = counts.responses(problems)
        found = _interval(counts.classes.over("correct", problems), responses, "accuracy")
        yield {"model": model, "problems": name, "outer": outer, "inner": inner, "n": int(responses.sum()), **found}


def _interval(counted: Counts, of: Counts, name: str, clusters: Counts | None = None) -> Row:
    return columns(over_problems(counted, of, clusters), name)


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


def kappa_with_interval(tables: Counts) -> tuple[float | None, float | None, float | None]:
    """Cohen's kappa of the summed contingency tables of C problems (C, K, K) and the 95 % interval of a bootstrap over
    problems; None where chance alone agrees."""
    n = len(tables)
    value = _kappa(tables.sum(0)) if n else math.nan
    if math.isnan(value):
        return None, None, None
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)  # (D, C)
    drawn = (weights @ tables.reshape(n, -1)).reshape(-1, *tables.shape[1:])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile([_kappa(table) for table in drawn], [tail, 1 - tail])
    return value, float(low), float(high)


def _kappa(table: Counts) -> float:
    from statsmodels.stats.inter_rater import cohens_kappa

    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(cohens_kappa(table, return_results=False))
    return value if math.isfinite(value) else math.nan
