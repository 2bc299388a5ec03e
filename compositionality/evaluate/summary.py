"""Shares, differences and the ladder of models, with intervals, from the rows of the results; the tables of a study."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from compositionality.evaluate.results import ProblemSet, Results
from compositionality.evaluate.table import is_paired, ks_of, measure_of
from compositionality.evaluate.types import CORRECT, QUERY_VALUES
from compositionality.stats.estimate import (
    ByProblem,
    Estimate,
    Interval,
    difference,
    over_problems,
    over_seeds,
    over_splits,
    pooled,
)

Row = dict[str, Any]
Term = tuple[float, str, str]  # factor, model and measure
HELDOUT, LEVEL = "heldout", 3  # the problems on which the gain is measured
TITLES = [
    *("arm", "whose answers", "sampled", "wrong ones", "normalised"),
    *("updates", "loss tokens an update", "share of RL’s gain"),
]
LARGEST_SHARE = 1e3  # of a gain; an end beyond it means that the gain may be 0


def share(results: Results, arm: str, problems: ProblemSet, measure: str = CORRECT, base: str = "") -> Estimate | None:
    """Estimate a share (0 to 1) of one model's answers; for a measure of two models (``is_paired``) against ``base``.

    None if nothing was judged, k is above the number of samples, or the measure is not a share.
    """
    if results.figures is not None:
        figure = results.figures.loc[arm]
        interval = Interval(figure["low"], figure["high"])
        return None if figure["reason"] else Estimate(float(figure["value"]), 0, interval, interval)
    if measure in QUERY_VALUES:
        return None
    return estimate_sum(results.join_base(base) if base else results, problems, [(1.0, arm, measure)])


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
    """Estimate measure(arm) − ``times`` × ``base_measure``(base), paired by problem.

    ``over``, a model and its base: subtract their difference (without ``times`` and ``base_measure``). Without a
    ``base``, and for a measure of two models, return the ``share``.
    """
    if not base or is_paired(measure):
        return share(results, arm, problems, measure, base)
    terms = [(1.0, arm, measure), (-times, base, base_measure or measure)]
    if over:
        terms = [(1.0, arm, measure), (-1.0, base, measure), (-1.0, over[0], measure), (1.0, over[1], measure)]
    largest = 2 * float(results.rows[measure].fillna(0.0).abs().max()) or 1.0 if measure in QUERY_VALUES else 1.0
    low, high = (largest * sum(factor for factor, *_ in terms if factor * sign > 0) for sign in (-1, 1))
    return estimate_sum(results, problems, terms, low, high)


def empty_replicates(results: Results, arm: str, base: str, problems: ProblemSet, measure: str) -> list[str]:
    """Return the replicates in which no problem counts for a measure of two models, if both were measured in all."""
    if not is_paired(measure):
        return []
    pairs = results.join_base(base)
    rows = {replicate.name: pairs.select(arm, problems, replicate.name) for replicate in results.replicates}
    exact = ["gold_log_prob", "base_log_prob"]
    if not all(answers[exact].notna().all(axis=1).any() for answers in rows.values()):
        return []
    return [name for name, answers in rows.items() if not by_problem(answers, measure).weights.any()]


def by_problem(rows: pd.DataFrame, measure: str, n_samples: int = 1) -> ByProblem:
    """Return a measure of each problem, with a number for its cluster, (P,)."""
    return ByProblem(*measure_of(measure, n_samples)(rows), pd.factorize(rows["cluster"])[0])


def estimate_sum(
    results: Results, problems: ProblemSet, terms: Sequence[Term], low: float = 0.0, high: float = 1.0
) -> Estimate | None:
    """Estimate the sum of the terms; for a pool of sets the mean over all their problems."""
    parts = results.parts(problems)
    estimates = [estimate for part in parts if (estimate := _estimate_of_set(results, part, terms, low, high))]
    if len(estimates) < len(parts):
        return None
    return estimates[0] if len(parts) == 1 else pooled(estimates, [results.size(part) for part in parts], low, high)


def _estimate_of_set(
    results: Results, problems: ProblemSet, terms: Sequence[Term], low: float, high: float
) -> Estimate | None:
    models = [_values(results, arm, problems, measure) for _, arm, measure in terms]
    if not all(models):
        return None
    seeds = models[0]
    if low < 0:
        factors = [factor for factor, *_ in terms]
        seeds = [
            [difference(factors, replicate) for replicate in zip(*splits, strict=True)]
            for splits in zip(*models, strict=True)
        ]
    if results.nested:
        return over_splits([[over_problems(*split, low, high) for split in splits] for splits in seeds], low, high)
    values, weights, clusters = zip(*(split for splits in seeds for split in splits), strict=True)
    return over_seeds(np.stack(values), np.stack(weights), clusters[0], low, high)


def _values(results: Results, arm: str, problems: ProblemSet, measure: str) -> list[list[ByProblem]]:
    """Return values by seed and split; empty if a replicate lacks answers, or problems with k samples."""
    key = arm, problems, measure
    if key in results.measured:
        return results.measured[key]
    n = results.samples(problems) if ks_of(measure, 1) else 1  # ks_of: empty but for pass@k
    least = max(ks_of(measure, n), default=0)
    seeds = [[results.select(arm, problems, name) for name in names] for names in results.seeds]
    measurable = all(not split.empty and (split["judged"] >= least).any() for splits in seeds for split in splits)
    values = [[by_problem(split, measure, n) for split in splits] for splits in seeds] if measurable else []
    return results.measured.setdefault(key, values)


def columns(estimate: Estimate | None, value: str) -> Row:
    """Return the columns of an estimate: ``value``, both intervals, the value of every seed (and split).

    All are None without an estimate; ``splits`` is None unless every replicate has its own problems.
    """
    names = (value, "low", "high", "interval", "problems_low", "problems_high", "values", "splits")
    if estimate is None:
        return dict.fromkeys(names)
    splits = [list(values) for values in estimate.by_replicate] if estimate.nested else None
    figures = (estimate.value, *estimate.interval, estimate.source, *estimate.over_problems)
    return dict(zip(names, (*figures, list(estimate.by_seed), splits), strict=True))


def shares(results: Results, measure: str, value: str, sets: Sequence[ProblemSet] = ()) -> list[Row]:
    """Return a row for each set of problems (``sets``; empty: all) and model; rows without a value only for CORRECT."""
    return _rows(results, [(arm, "") for arm in results.arms], measure, value, sets)


def differences(results: Results, measure: str, sets: Sequence[ProblemSet] = (), first: str = "") -> list[Row]:
    """Return rows like ``shares`` for each pair of models (only pairs with ``first``), the later − the earlier one."""
    pairs = [(arm, base) for base, arm in combinations(results.arms, 2) if first in ("", base)]
    return _rows(results, pairs, measure, "difference", sets)


def _rows(
    results: Results, compared: Sequence[tuple[str, str]], measure: str, value: str, sets: Sequence[ProblemSet]
) -> list[Row]:
    rows = []
    for problems, (arm, base) in product(sets or results.sets, compared):
        estimate = contrast(results, arm, base, problems, measure)
        if estimate or measure == CORRECT:
            names = {"model": arm, "base": base} if base else {"model": arm}
            rows.append({**names, **labels(results, problems), "measure": measure, **columns(estimate, value)})
    return rows


def labels(results: Results, problems: ProblemSet) -> Row:
    """Return the columns that identify a row."""
    return {
        "problems": problems.file,
        "group": problems.group,
        "level": problems.level,
        "data_source": problems.data_source,
        "n_seeds": len(results.seeds),
        "n_problems": results.size(problems),
    }


def rungs(results: Results, ladder: Mapping[str, Sequence[str]], start: str) -> tuple[list[Row], dict[str, Any]]:
    """Return a row for each evaluated rung, and a table: its ``ladder`` words, its updates and tokens, its share.

    Rungs are arms that differ in one ingredient each; shares are of the gain of the last rung over ``start``. No rows
    if that gain is not above 0, or if there is no other rung.
    """
    *_, last = ladder
    problems, arms = results.problem_set(HELDOUT, LEVEL), [arm for arm in ladder if arm in results.arms]
    rows, cells = list[Row](), list[list[str]]()
    if problems is None or len(arms) < 2 or not {last, start} <= {*results.arms}:
        return [], {}
    for arm in arms:
        if (figure := share_of_gain(results, arm, last, start, problems)) is None:
            return [], {}
        share, (low, high) = figure
        rows.append({"model": arm, "share": share, "low": low, "high": high, "of": last, "over": start})
        reports = [place.training[arm] for place in results.replicates if arm in place.training]
        trained = [(run.updates_with_signal or 0, run.tokens) for run in reports if run.updates and run.tokens]
        counts = [(updates, round(tokens / max(1, updates))) for updates, tokens in trained]
        ends = [dict.fromkeys((f"{min(column):,}", f"{max(column):,}")) for column in zip(*counts, strict=True)]
        shown = f"{100 * share:.0f} % [{100 * low:.0f}, {100 * high:.0f}]".replace("-", "−")
        cells.append([arm, *ladder[arm], *(map("–".join, ends) if ends else ("–", "–")), shown])
    return rows, {"summary": "What each rung changes, and what it took", "titles": TITLES, "rows": cells}


def share_of_gain(
    results: Results, arm: str, model: str, base: str, problems: ProblemSet
) -> tuple[float, Interval] | None:
    """Return (arm − base) / (model − base), and the shares s for which arm − base − s (model − base) may be 0.

    This is Fieller's interval, with the intervals of all other estimates. None unless the gain of ``model`` is above 0,
    also on the problems that all three have answered.
    """
    gain, arm_gain = (contrast(results, name, base, problems) for name in (model, arm))
    if gain is None or arm_gain is None or gain.low <= 0:
        return None

    def remainder(share: float) -> Interval:
        terms = [(1.0, arm, CORRECT), (-share, model, CORRECT), (share - 1.0, base, CORRECT)]
        bound = sum(abs(factor) for factor, *_ in terms) / 2
        estimate = estimate_sum(results, problems, terms, -bound, bound)
        assert estimate is not None
        return estimate.interval

    far = 2.0
    while remainder(-far).low < 0 or remainder(far).high > 0:
        far *= 2
        if far > LARGEST_SHARE:
            return None
    ends = (brentq(lambda share, end=end: remainder(share)[end], -far, far, xtol=1e-3) for end in (0, 1))
    return arm_gain.value / gain.value, Interval(*map(float, ends))
