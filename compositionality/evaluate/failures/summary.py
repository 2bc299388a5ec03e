"""What labels say: counts by problem, faults, functions and pairs of functions, and how far a judge model agrees."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compositionality.console import natural_key
from compositionality.data.artefact import verify
from compositionality.data.parquet import read_table
from compositionality.evaluate.failures.judge import COLUMNS, MALFORMED
from compositionality.evaluate.failures.labels import LABELS_SCHEMA
from compositionality.evaluate.results import Results
from compositionality.evaluate.summary import columns, share
from compositionality.evaluate.summary import labels as about
from compositionality.evaluate.table import FAILURE
from compositionality.stats.estimate import CONFIDENCE, Counts, over_problems
from compositionality.types import CORRECT, FAILURES

Row = dict[str, Any]
PROBLEM = ["arm", "file", "problem"]
KEYS = [*PROBLEM, "group", "level", "data_source", "cluster"]


def read_labels(path: Path) -> pd.DataFrame:
    """Read labels.parquet; models and files keep their order."""
    return read_table(path, LABELS_SCHEMA.names, types=LABELS_SCHEMA, gaps=LABELS_SCHEMA.names).to_pandas()


def count_classes(labels: pd.DataFrame) -> pd.DataFrame:
    """Return a row of the table of results for each model and problem: its responses by class."""
    keys = [labels[name] for name in KEYS]
    classes = pd.crosstab(keys, labels["class"]).reindex(columns=list(FAILURES), fill_value=0)
    rows = classes.add_prefix(FAILURE).assign(handed_on=labels.groupby(KEYS)["composed"].sum())
    n = classes.sum(axis=1)
    rows = rows.assign(n=n, judged=n, right=classes[CORRECT]).reset_index()
    order = {key: place for place, key in enumerate(dict.fromkeys(zip(labels["arm"], labels["file"], strict=True)))}
    place = [order[key] for key in zip(rows["arm"], rows["file"], strict=True)]
    return rows.assign(place=place).sort_values(["place", "problem"], ignore_index=True).drop(columns="place")


def class_shares(results: Results) -> list[Row]:
    """Return the share of every class by set of problems and model, with its interval and values by seed."""
    return [
        {
            "model": arm,
            **about(results, problems),
            "class": name,
            **columns(share(results, arm, problems, name), "share"),
        }
        for problems in results.sets
        for arm in results.arms
        for name in FAILURES
    ]  # fmt: skip


def faults(labels: pd.DataFrame) -> pd.DataFrame:
    """Return what exactly was wrong, as shares of all responses by level: columns class, fault, value, low, high.

    Class *correct*: a right answer after a faulty trace.
    """
    rows = []
    for key, part in labels.groupby(["arm", "file", "group", "level"], sort=False):
        sizes = part.groupby("problem").size()
        for (kind, fault), wrong in part.dropna(subset=["fault"]).groupby(["class", "fault"]):
            counts = wrong.groupby("problem").size().reindex(sizes.index, fill_value=0)
            named = dict(zip(("arm", "file", "group", "level"), key, strict=True))
            rows.append({**named, "class": kind, "fault": fault, **_estimate(counts, sizes)})
    return pd.DataFrame(rows, columns=["arm", "file", "group", "level", "class", "fault", "value", "low", "high"])


def by_function(labels: pd.DataFrame) -> pd.DataFrame:
    """Return, for each function, in how many of the steps that apply it the result is wrong: ``error_rate``.

    Steps of all levels. ``alone``: accuracy on the problems that ask for this function only (null: there are none).
    """
    rows = []
    for (arm, file, group), part in labels.groupby(["arm", "file", "group"], sort=False):
        steps = part[["problem", "applied", "wrong"]].explode(["applied", "wrong"]).dropna(subset=["applied"])
        alone = part[part["inner"].isna()].groupby("outer")["class"].agg(lambda classes: (classes == CORRECT).mean())
        for function in sorted(set(steps["applied"]), key=natural_key):
            wrong = steps[steps["applied"] == function].groupby("problem")["wrong"].agg(["sum", "size"]).astype(int)
            found = _estimate(wrong["sum"], wrong["size"], "error_rate")
            sizes = {"reached": int(wrong["size"].sum()), "wrong": int(wrong["sum"].sum())}
            named = {"model": arm, "problems": file, "group": group, "function": function}
            rows.append({**named, **sizes, **found, "alone": alone.get(function)})
    return pd.DataFrame(rows)


def by_pair(labels: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy on the problems that compose two functions, outer after inner."""
    rows = []
    pairs = labels.dropna(subset=["inner"])
    for (arm, file, group, outer, inner), part in pairs.groupby(["arm", "file", "group", "outer", "inner"], sort=False):
        right = (part["class"] == CORRECT).groupby(part["problem"]).agg(["sum", "size"])
        named = {"model": arm, "problems": file, "group": group, "outer": outer, "inner": inner}
        rows.append({**named, "n": len(part), **_estimate(right["sum"], right["size"], "accuracy")})
    return pd.DataFrame(rows)


def _estimate(counts: "pd.Series[Any]", sizes: "pd.Series[Any]", name: str = "value") -> Row:
    estimate = over_problems(counts.to_numpy(np.int64), sizes.to_numpy(np.int64))
    ends = (estimate.value, *estimate.over_problems) if estimate else (None,) * 3
    return dict(zip((name, "low", "high"), ends, strict=True))


DRAWS = 2000


def agreement(judged: Path) -> Row:
    """Return figures of judge.parquet; malformed answers are counted and left out of the rest. None: undefined."""
    made = verify(judged)
    rows = read_table(judged, COLUMNS.names).to_pandas()
    valid = rows[rows["judge"] != MALFORMED]
    clusters = valid.groupby(["file", "problem"], sort=True).ngroup().to_numpy(np.int64)
    numbers = [valid[name].map(FAILURES.index).to_numpy(np.int64) for name in ("program", "judge")]
    tables = np.zeros((int(clusters.max(initial=-1)) + 1, len(FAILURES), len(FAILURES)), np.int64)
    np.add.at(tables, (clusters, *numbers), 1)
    whole = tables.sum(0)
    same = float(np.trace(whole) / len(valid)) if len(valid) else None
    found = {"model": made.settings["judge"], "n": len(valid), "malformed": len(rows) - len(valid), "agreement": same}
    return {**found, **dict(zip(("kappa", "low", "high"), kappa_with_interval(tables), strict=True))}


def kappa_with_interval(tables: Counts) -> tuple[float | None, float | None, float | None]:
    """Return Cohen's kappa of the summed contingency tables of C problems (C, K, K) and the 95 % interval of a
    bootstrap over problems; None where chance alone agrees."""
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
