"""Curves of pass@k, paired differences, and by how many more samples the base makes up for them.

The budget factor at k: the least whole m at which the base's pass@(m·k) is no longer below the model's pass@k. Its
interval holds the factors at which the interval of the difference holds 0; an end beyond the largest m that the samples
allow is None. Only where the lower end is, RL did more than move up what the base finds with as many samples.
"""
# ruff: noqa: N806

from collections.abc import Callable, Mapping, Sequence
from math import floor, log10
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from compositionality.errors import UserError
from compositionality.evaluate.results import ProblemSet, Results
from compositionality.evaluate.summary import columns, contrast, labels, share
from compositionality.evaluate.tables import NOT_TESTABLE, rich_table
from compositionality.stats.estimate import TIE, Band, mean_of_independent
from compositionality.types import Estimate, Interval, TrainingReport

POINTS = 40
"""Values of k, or budget factors, that are looked at at most."""
POOLED = 0
"""In place of a level: all levels of the group together."""
Row = dict[str, Any]
Pairs = Sequence[tuple[str, str]]
"""(model, base): the difference is the model − the base."""


def spaced(largest: int) -> list[int]:
    """Return 1, …, ``largest``: all of them, or ``POINTS`` evenly spaced on a logarithmic axis."""
    if largest <= POINTS:
        return [*range(1, largest + 1)]
    return sorted({round(float(number)) for number in np.geomspace(1, largest, POINTS)})


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
            for arm, base in [*((arm, "") for arm in results.arms), *pairs]:
                each = [
                    contrast(results, arm, base, one, f"pass@{k}") if base else share(results, arm, one, f"pass@{k}")
                    for one in sets
                ]
                estimate = _pooled(each, [results.size(one) for one in sets])
                rows.append({"model": arm, "base": base, **about, "k": k, **columns(estimate, "value")})
    return pd.DataFrame(rows)


def _pooled(estimates: Sequence[Estimate | None], sizes: Sequence[int]) -> Estimate | None:
    """Return the mean over the problems of all sets; the levels of a test file and their sizes are no chance."""
    known = [estimate for estimate in estimates if estimate]
    if len(known) < len(estimates) or len(estimates) == 1:
        return known[0] if len(known) == len(estimates) else None
    weights, first = np.array(sizes) / sum(sizes), known[0]
    value_N = np.array([one.value for one in known])

    def interval(ends: Sequence[Interval]) -> Interval:
        _, low, high = mean_of_independent(Band(value_N, *np.array(ends).T), weights)
        return Interval(float(low), float(high))

    each = zip(*(one.by_replicate for one in known), strict=True)
    return Estimate(
        float(weights @ value_N),
        sum(one.n_problems for one in known),
        interval([one.over_problems for one in known]),
        interval([one.interval for one in known]) if first.over_seeds else None,
        by_replicate=tuple(tuple(map(float, weights @ np.array(seed))) for seed in each),
        nested=first.nested,
    )


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
    n, sizes = min(results.samples(one) for one in sets), [results.size(one) for one in sets]
    rows = []
    for k in (1 << power for power in range((n // 2).bit_length())):
        factors = spaced(n // k)
        estimates = []
        for m in factors:
            parts = f"pass@{k}", f"pass@{k * m}"
            estimates.append(_pooled([contrast(results, arm, base, one, *parts) for one in sets], sizes))
        if known := [(estimate.value, *estimate.interval) for estimate in estimates if estimate]:
            factor, low, high = (_first(factors[: len(known)], column <= 0) for column in np.array(known).T)
            rows.append({"k": k, "largest": factors[-1], "factor": factor, "low": low, "high": high})
    return rows


def _first(numbers: Sequence[int] | pd.Series, holds: np.ndarray[Any, np.dtype[np.bool_]]) -> int | None:
    places = np.flatnonzero(holds)
    return int(np.asarray(numbers)[places[0]]) if len(places) else None


def table_ks(ks: Sequence[int], largest: int) -> list[int]:
    """Return the k to print: those that were asked for, else powers of two and the largest."""
    powers = [1 << power for power in range(largest.bit_length()) if 1 << power < largest]
    return [k for k in ks if k <= largest] if ks else [*powers, largest]


def print_curves(results: Results, pairs: Pairs, ks: Sequence[int], runs: Mapping[str, Row], console: Console) -> None:
    """Print a table for every model, and two for every pair, on every problem file; intervals below the figures.

    ``runs``: FLOPs and training report of the models that are checkpoints of a run.
    """
    largest = {file: largest_k(results, file) for file in dict.fromkeys(problems.file for problems in results.sets)}
    rows = curves(results, pairs, lambda file: table_ks(ks, largest[file]))
    sampling = results.replicates[0].sampling
    setting = f"{sampling['n_samples']} samples of each problem, temperature {sampling['temperature']:g}"
    for (arm, file), answers in results.rows.groupby(["arm", "file"], sort=False):
        if missing := int((answers["n"] - answers["judged"]).sum()):
            console.print(
                f"{arm} on {file}: {missing} samples have no verdict (judge or server failed); "
                "curves end at the fewest judged samples of a problem",
                highlight=False,
            )
    for (model, base, file), curve in rows.groupby(["model", "base", "problems"], sort=False):
        title = f"{model} − {base} on {file}: pass@k in points" if base else f"{model} on {file}: pass@k in %"
        note = "paired by problem, 95 % intervals" if base else f"95 % intervals ({setting})"
        console.print(f"\n{title}, {note}", highlight=False, markup=False)
        console.print(rich_table(_curve_table(curve, largest[file]), "level"))
    for arm, base in pairs:
        console.print(
            f"\n{arm} against {base} with m times the samples: the least m at which {base} solves as much, "
            "95 % interval",
            highlight=False,
        )
        factors = {
            f"{name.file} {name}" if name.level else f"{name.file} {name}, all levels": {
                f"k={row['k']}": factor_text(row) for row in budget_factors(results, arm, base, sets)
            }
            for name, sets in slices(results)
        }
        console.print(rich_table(pd.DataFrame.from_dict(factors, "index").fillna("–"), "level"))
    pooled = rows[(rows["level"] == POOLED) & (rows["base"] == "")] if runs else rows.iloc[:0]
    for (group, file), curve in pooled.groupby(["group", "problems"], sort=False):
        console.print(
            f"\n{group} of {file}, all levels, along training: pass@k in %, and pass@1 gained", highlight=False
        )
        console.print(rich_table(_along_training(curve, runs), "checkpoint"))


def _curve_table(curve: pd.DataFrame, largest: int) -> pd.DataFrame:
    """Return a line for each level, a column for each k; of differences also where they change their sign."""
    signed = bool(curve["base"].iloc[0])
    form = "{:+.1f}\n{:+.0f} {:+.0f}" if signed else "{:.1f}\n{:.0f}–{:.0f}"
    lines = {}
    for (group, level), rows in curve.groupby(["group", "level"], sort=False):
        line = lines[f"{group} L{level}" if level else f"{group}, all levels"] = {"n": str(rows["n_problems"].iloc[0])}
        figures = 100 * rows[["value", "low", "high"]]
        line |= {f"k={k}": form.format(*row) for k, row in zip(rows["k"], figures.to_numpy(), strict=True)}
        if signed:
            line["crosses at k"] = crossing_text(crossover(rows), largest)
    return pd.DataFrame.from_dict(lines, "index")


def crossing_text(crossed: Row | None, largest: int) -> str:
    """Return ``12`` with its interval below, ``> 128`` for an end beyond the largest k; – if curves do not cross."""
    if crossed is None:
        return "–"
    ends = (str(crossed[end]) if crossed[end] is not None else f"> {largest}" for end in ("low", "high"))
    return f"{crossed['k']}\n{' … '.join(ends)}"


def factor_text(row: Row) -> str:
    """Return ``12`` with its interval below, ``> 64`` for what lies beyond the largest factor."""
    ends = [str(row[end]) if row[end] is not None else f"> {row['largest']}" for end in ("factor", "low", "high")]
    return f"{ends[0]}\n[{' … '.join(dict.fromkeys(ends[1:]))}]"


def _along_training(curve: pd.DataFrame, runs: Mapping[str, Row]) -> pd.DataFrame:
    """Return a line for each checkpoint; what pass@1 gained over the first line, and for a power of ten of FLOPs."""
    unit = 10.0 ** floor(log10(max(run["flops"] for run in runs.values())))
    shares = 100 * curve.pivot(index="model", columns="k", values="value").reindex(curve["model"].unique())
    cells = shares.map("{:.1f}".format).add_prefix("k=")
    cells.insert(0, "FLOPs", [f"{runs[model]['flops']:.2e}" if model in runs else "–" for model in cells.index])
    cells[["points", f"points for {unit:.0e} FLOPs"]] = "–"
    gained = shares.iloc[:, 0] - shares.iloc[0, 0]
    for model, run in runs.items():
        report = TrainingReport(**{name: value for name, value in run.items() if name != "flops"})
        points = f"{gained[model]:+.2f}", f"{gained[model] / run['flops'] * unit:+.2f}"
        cells.loc[model, cells.columns[-2:]] = [NOT_TESTABLE] * 2 if report.not_testable else points
    return cells
