"""Shares and differences of models, with their intervals, from the rows of the results; the tables of a study."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from compositionality.evaluate.measures import is_pass_at_k, ks_of, measure_of
from compositionality.evaluate.results import ProblemSet, Results
from compositionality.stats.estimate import ByProblem, difference, over_problems, over_seeds, over_splits
from compositionality.types import CORRECT, QUERY_VALUES, Estimate, Interval

Row = dict[str, Any]


def share(results: Results, arm: str, problems: ProblemSet, measure: str = CORRECT) -> Estimate | None:
    """Estimate a share of one model's answers, 0 to 1.

    None if nothing was judged, k is above the number of samples, or the measure is no share.
    """
    if results.figures is not None:
        figure = results.figures.loc[arm]
        interval = Interval(figure["low"], figure["high"])
        return None if figure["reason"] else Estimate(float(figure["value"]), 0, interval, interval)
    values = _values(results, arm, problems, measure)
    return None if values is None or measure in QUERY_VALUES else _estimate(results, values)


def contrast(
    results: Results,
    arm: str,
    base: str,
    problems: ProblemSet,
    measure: str = CORRECT,
    base_measure: str = "",
    times: float = 1.0,
    over: Sequence[str] = (),
) -> Estimate | None:
    """Estimate a model's figure − ``times`` × that of another one (or its ``base_measure``), paired by problem.

    ``over``, a model and its base: less their difference (without ``times`` and ``base_measure``).
    """
    terms = [(1.0, arm, measure), (-times, base, base_measure or measure)]
    if over:
        terms = [(1.0, arm, measure), (-1.0, base, measure), (-1.0, over[0], measure), (1.0, over[1], measure)]
    models = [_values(results, name, problems, which) for _, name, which in terms]
    known = [model for model in models if model is not None]
    if len(known) < len(terms):
        return None
    factors = [factor for factor, *_ in terms]
    largest = 2 * float(results.rows[measure].fillna(0.0).abs().max()) or 1.0 if measure in QUERY_VALUES else 1.0
    low, high = (largest * sum(factor for factor in factors if factor * sign > 0) for sign in (-1, 1))
    differences = [
        [difference(factors, replicate) for replicate in zip(*splits, strict=True)]
        for splits in zip(*known, strict=True)
    ]
    return _estimate(results, differences, low, high)


def by_problem(rows: pd.DataFrame, measure: str, n_samples: int = 1) -> ByProblem:
    """Return a measure of each problem of some rows, with a number for its cluster, (P,)."""
    return ByProblem(*measure_of(measure, n_samples)(rows), pd.factorize(rows["cluster"])[0])


def _values(results: Results, arm: str, problems: ProblemSet, measure: str) -> list[list[ByProblem]] | None:
    """Return values by seed and split; None if a replicate has no answers, or no problem with k samples."""
    n = results.samples(problems) if is_pass_at_k(measure) else 1
    seeds = [[results.of_replicate(arm, problems, name) for name in names] for names in results.seeds]
    rows = [split for splits in seeds for split in splits]
    if any(split.empty for split in rows):
        return None
    if is_pass_at_k(measure) and not all((split["judged"] >= max(ks_of(measure, n))).any() for split in rows):
        return None
    return [[by_problem(split, measure, n) for split in splits] for splits in seeds]


def _estimate(
    results: Results, seeds: Sequence[Sequence[ByProblem]], low: float = 0.0, high: float = 1.0
) -> Estimate | None:
    if results.nested:
        return over_splits([[over_problems(*split, low, high) for split in splits] for splits in seeds], low, high)
    values, weights, clusters = zip(*(split for splits in seeds for split in splits), strict=True)
    return over_seeds(np.stack(values), np.stack(weights), clusters[0], low, high)


def columns(estimate: Estimate | None, value: str) -> Row:
    """Return the columns of an estimate: ``value``, both intervals, the value of every seed (and split).

    None where there is no estimate; ``splits`` where every replicate has problems of its own.
    """
    names = (value, "low", "high", "interval", "problems_low", "problems_high", "values", "splits")
    if estimate is None:
        return dict.fromkeys(names)
    splits = [list(values) for values in estimate.by_replicate] if estimate.nested else None
    figures = (estimate.value, *estimate.interval, estimate.source, *estimate.over_problems)
    return dict(zip(names, (*figures, list(estimate.by_seed), splits), strict=True))


def shares(results: Results, measure: str, value: str) -> list[Row]:
    """Return a row for each set of problems and model; without a figure only of ``CORRECT``."""
    rows = []
    for problems, arm in product(results.sets, results.arms):
        estimate = share(results, arm, problems, measure)
        if estimate or measure == CORRECT:
            rows.append({"model": arm, **labels(results, problems), "part": measure, **columns(estimate, value)})
    return rows


def differences(results: Results, measure: str) -> list[Row]:
    """Return a row for each set of problems and pair of models, the later one − the earlier one; as ``shares``."""
    rows = []
    for problems, (base, arm) in product(results.sets, combinations(results.arms, 2)):
        estimate = contrast(results, arm, base, problems, measure)
        if estimate or measure == CORRECT:
            names = {"model": arm, "base": base, **labels(results, problems), "part": measure}
            rows.append({**names, **columns(estimate, "difference")})
    return rows


def labels(results: Results, problems: ProblemSet) -> Row:
    """Return the columns that say what a row is about."""
    return {
        "problems": problems.file,
        "group": problems.group,
        "level": problems.level,
        "data_source": problems.data_source,
        "n_seeds": len(results.seeds),
        "n_problems": results.size(problems),
    }
