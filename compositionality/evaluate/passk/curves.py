"""Curves of pass@k, paired differences, and by how many more samples the base makes up for them.

The budget factor at k: the least whole m at which the base's pass@(m·k) is no longer below the model's pass@k. Its
interval holds the factors at which the interval of the difference holds 0; an end beyond the largest m that the samples
allow is None. Only where the lower end is, RL did more than move up what the base finds with as many samples.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from compositionality.errors import UserError
from compositionality.evaluate.results import ProblemSet, Results
from compositionality.evaluate.summary import columns, contrast, labels, share
from compositionality.stats.estimate import TIE, Band, mean_of_independent
from compositionality.types import Estimate, Interval

POINTS = 40
"""Values of k, or budget factors, that are looked at at most."""
POOLED = 0
"""In place of a level: all levels of the group together."""
Row = dict[str, Any]
Pairs = Sequence[tuple[str, str]]
"""(model, base): the difference is the model − the base."""


def spaced(largest: int) -> list[int]:
    """Return 1, …, ``largest``: all of them, or ``POINTS`` evenly spaced on a logarithmic axis."""
    return sorted({round(float(number)) for number in np.geomspace(1, largest, POINTS)}) if largest > POINTS else [
        *range(1, largest + 1)
    ]  # fmt: skip


def powers(largest: int) -> list[int]:
    """Return 1, 2, 4 … up to ``largest``."""
    return [1 << power for power in range(largest.bit_length())]


def largest_k(results: Results, file: str) -> int:
    """Return the most samples that every problem has; UserError if a problem has fewer than two."""
    rows = results.rows[results.rows["file"] == file]
    row = rows.loc[rows["judged"].idxmin()]
    if row["judged"] < 2:
        told = f"problem {row['problem']} has {row['judged']} judged samples; judge them again"
        raise UserError(f"{row['arm']} on {file}: {told}")
    return int(row["judged"])


def slices(results: Results) -> list[tuple[ProblemSet, list[ProblemSet]]]:
    """Return the levels of every file and group, then all of them pooled (``POOLED``), each with its sets."""
    found = []
    for file, group in dict.fromkeys((one.file, one.group) for one in results.sets):
        sets = sorted(one for one in results.sets if (one.file, one.group) == (file, group))
        found += [(one, [one]) for one in sets if one.level != POOLED]
        found.append((ProblemSet(file, group, POOLED), sets))
    return found


def curves(results: Results, pairs: Pairs, ks: Callable[[str], Sequence[int]]) -> pd.DataFrame:
    """Return rows of pass@k by model, level and k (``ks`` of a file), then of the paired differences (``base``)."""
    rows: list[Row] = []
    for name, sets in slices(results):
        about = {**labels(results, name), "n_problems": sum(map(results.size, sets))}
        for k in ks(name.file):
            part = f"pass@{k}"
            for arm in results.arms:
                mean = _pooled(results, sets, [share(results, arm, one, part) for one in sets])
                rows.append({"model": arm, "base": "", **about, "k": k, **columns(mean, "value")})
            for arm, base in pairs:
                mean = _pooled(results, sets, [contrast(results, arm, base, one, part) for one in sets])
                rows.append({"model": arm, "base": base, **about, "k": k, **columns(mean, "value")})
    return pd.DataFrame(rows)


def _pooled(results: Results, sets: Sequence[ProblemSet], estimates: Sequence[Estimate | None]) -> Estimate | None:
    """The mean over the problems of all sets; the levels of a test file and their sizes are no chance."""
    known = [estimate for estimate in estimates if estimate]
    if len(known) < len(estimates) or len(known) < 2:
        return known[0] if len(known) == len(estimates) else None
    weights = np.array([results.size(one) for one in sets], float)
    weights /= weights.sum()

    def interval(ends: Sequence[Interval]) -> Interval:
        parts = Band(np.array([one.value for one in known]), *np.array(ends).T)
        return Interval(*map(float, mean_of_independent(parts, weights)[1:]))

    value = float(weights @ [one.value for one in known])
    each = zip(*(one.by_replicate for one in known), strict=True)
    by_replicate = tuple(tuple(map(float, weights @ np.array(seed))) for seed in each)
    over_seeds = interval([one.interval for one in known]) if known[0].over_seeds else None
    over_problems = interval([one.over_problems for one in known])
    n = sum(one.n_problems for one in known)
    return Estimate(value, n, over_problems, over_seeds, by_replicate=by_replicate, nested=known[0].nested)


def crossover(curve: pd.DataFrame) -> Row | None:
    """Return the first k at which a difference (rows by k) has changed its sign; None if it never does.

    ``low``: the first k at which its interval no longer lies on the side where it began; ``high``: from which it lies
    on the other side; None: beyond the largest k.
    """
    curve = curve.dropna(subset=["value"])
    values = curve["value"].to_numpy(float)
    sign = next((np.sign(value) for value in values if abs(value) > TIE), 0.0)
    ends = [sign * curve[name].to_numpy(float) for name in ("low", "high")]
    low, high = ends if sign > 0 else reversed(ends)
    k = _first(curve["k"], sign * values < -TIE)
    return None if k is None else {"k": k, "low": _first(curve["k"], low <= 0), "high": _first(curve["k"], high < 0)}


def budget_factors(results: Results, arm: str, base: str, sets: Sequence[ProblemSet]) -> list[Row]:
    """Return, for each k that is a power of two, the budget factor with its interval."""
    n = min(results.samples(one) for one in sets)
    rows = []
    for k in powers(n // 2):
        factors = spaced(n // k)
        estimates = []
        for m in factors:
            parts = f"pass@{k}", f"pass@{k * m}"
            estimates.append(_pooled(results, sets, [contrast(results, arm, base, one, *parts) for one in sets]))
        if known := [(estimate.value, *estimate.interval) for estimate in estimates if estimate]:
            ends = [_first(factors[: len(known)], column <= 0) for column in np.array(known).T]
            factor, low, high = ends
            rows.append({"k": k, "largest": factors[-1], "factor": factor, "low": low, "high": high})
    return rows


def _first(numbers: Sequence[int] | pd.Series, holds: np.ndarray[Any, np.dtype[np.bool_]]) -> int | None:
    places = np.flatnonzero(holds)
    return int(np.asarray(numbers)[places[0]]) if len(places) else None
