"""The tables of pass@k on the screen: curves, paired differences, budget factors, and along training."""

from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import Any

import pandas as pd
from rich.console import Console

from compositionality.evaluate.frames import rich_table
from compositionality.evaluate.passk.curves import (
    POOLED,
    Pairs,
    Row,
    budget_factors,
    crossover,
    curves,
    largest_k,
    slices,
)
from compositionality.evaluate.results import Results
from compositionality.evaluate.tables import NOT_TESTABLE, level_name
from compositionality.types import TrainingReport


def table_ks(ks: Sequence[int], largest: int) -> list[int]:
    """Return the k to print: those that were asked for, else powers of two and the largest."""
    powers = [1 << power for power in range(largest.bit_length()) if 1 << power < largest]
    return [k for k in ks if k <= largest] if ks else [*powers, largest]


def print_curves(results: Results, pairs: Pairs, ks: Sequence[int], runs: Mapping[str, Row], console: Console) -> None:
    """A table for every model, and two for every pair, on every problem file; intervals below the figures.

    ``runs``: FLOPs and training report of the models that are checkpoints of a run.
    """
    files = list(dict.fromkeys(one.file for one in results.sets))
    largest = {file: largest_k(results, file) for file in files}
    rows = curves(results, pairs, lambda file: table_ks(ks, largest[file]))
    sampling = results.replicates[0].sampling
    setting = f"{sampling['n_samples']} samples of each problem, temperature {sampling['temperature']:g}"
    _print_missing(results, console)
    for (model, base, file), curve in rows.groupby(["model", "base", "problems"], sort=False):
        title = f"{model} − {base} on {file}: pass@k in points" if base else f"{model} on {file}: pass@k in %"
        note = "paired by problem, 95 % intervals" if base else f"95 % intervals ({setting})"
        console.print(f"\n{title}, {note}", highlight=False, markup=False)
        console.print(rich_table(_curve_table(curve, largest[file], signed=bool(base)), "level"))
    for arm, base in pairs:
        told = f"{arm} against {base} with m times the samples: the least m at which {base} solves as much"
        console.print(f"\n{told}, 95 % interval", highlight=False)
        factors = {
            f"{name.file} {level_name(name.level, name.group, with_group=True)}": {
                f"k={row['k']}": factor_text(row) for row in budget_factors(results, arm, base, sets)
            }
            for name, sets in slices(results)
        }
        console.print(rich_table(pd.DataFrame.from_dict(factors, "index").fillna("–"), "level"))
    pooled = rows[(rows["level"] == POOLED) & (rows["base"] == "")] if runs else rows.iloc[:0]
    for (group, file), curve in pooled.groupby(["group", "problems"], sort=False):
        told = f"{group} of {file}, all levels, along training: pass@k in %, and pass@1 gained"
        console.print(f"\n{told}", highlight=False)
        console.print(rich_table(_along_training(curve, runs), "checkpoint"))


def _print_missing(results: Results, console: Console) -> None:
    """Samples on which judge or server failed: they count neither as right nor as wrong."""
    for (arm, file), rows in results.rows.groupby(["arm", "file"], sort=False):
        if missing := int((rows["n"] - rows["judged"]).sum()):
            console.print(
                f"{arm} on {file}: {missing} samples have no verdict (judge or server failed); "
                "curves end at the fewest judged samples of a problem",
                highlight=False,
            )


def _curve_table(curve: pd.DataFrame, largest: int, *, signed: bool) -> pd.DataFrame:
    lines: dict[str, dict[str, Any]] = {}
    for level, rows in curve.groupby(["group", "level"], sort=False):
        name = str(level[1] or "all")
        line = lines.setdefault(name if name not in lines else f"{level[0]} {name}", {})
        line["n"] = str(rows["n_problems"].iloc[0])
        for row in rows.to_dict("records"):
            value, low, high = (100 * row[key] for key in ("value", "low", "high"))
            line[f"k={row['k']}"] = (
                f"{value:+.1f}\n{low:+.0f} {high:+.0f}" if signed else f"{value:.1f}\n{low:.0f}–{high:.0f}"
            )
        if signed:
            line["crosses at k"] = crossing_text(crossover(rows), largest)
    return pd.DataFrame.from_dict(lines, "index")


def crossing_text(crossed: Row | None, largest: int) -> str:
    """``12`` with its interval below, ``> 128`` for an end beyond the largest k; – if the curves do not cross."""
    if crossed is None:
        return "–"
    ends = (str(crossed[end]) if crossed[end] is not None else f"> {largest}" for end in ("low", "high"))
    return f"{crossed['k']}\n{' … '.join(ends)}"


def factor_text(row: Row) -> str:
    """``12`` with its interval below, ``> 64`` for what lies beyond the largest factor."""
    ends = [str(row[end]) if row[end] is not None else f"> {row['largest']}" for end in ("factor", "low", "high")]
    return f"{ends[0]}\n[{' … '.join(dict.fromkeys(ends[1:]))}]"


def _along_training(curve: pd.DataFrame, runs: Mapping[str, Row]) -> pd.DataFrame:
    """A line for each checkpoint; what pass@1 gained over the first line, and for a power of ten of FLOPs."""
    unit = 10.0 ** floor(log10(max(run["flops"] for run in runs.values())))
    first = curve["value"].iloc[0]
    lines = {}
    for model, rows in curve.groupby("model", sort=False):
        run, points = runs.get(str(model)), 100 * (rows["value"].iloc[0] - first)
        gained = ["–", "–"] if run is None else [f"{points:+.2f}", f"{points / run['flops'] * unit:+.2f}"]
        if run and TrainingReport(**{name: run[name] for name in run if name != "flops"}).not_testable:
            gained = [NOT_TESTABLE] * 2
        shares = {f"k={row.k}": f"{100 * row.value:.1f}" for row in rows.itertuples()}
        ends = {"points": gained[0], f"points for {unit:.0e} FLOPs": gained[1]}
        lines[model] = {"FLOPs": f"{run['flops']:.2e}" if run else "–", **shares, **ends}
    return pd.DataFrame.from_dict(lines, "index")
