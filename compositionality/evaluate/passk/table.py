"""pass@k on a screen: levels down, k across, every figure with its interval below it."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from compositionality.console import new_console, new_table

Row = dict[str, Any]


def print_curves(content: Row, ks: Sequence[int], console: Console | None = None) -> None:
    """Print a table for every checkpoint, and one for every pair, on every problem file."""
    console = console or new_console()
    setting = f"{content['n_samples']} samples of each problem, temperature {content['temperature']:g}"
    for row in content["missing"]:
        console.print(
            f"{row['model']} on {row['problems']}: {row['samples']} samples have no verdict, as the verifier failed; "
            f"curves end at the fewest judged samples of a problem",
            highlight=False,
        )
    for title, rows in _groups(content["curves"], "{model} on {problems}: pass@k in %").items():
        console.print(f"\n{title}, 95 % intervals ({setting})", highlight=False, markup=False)
        console.print(_grid(rows, ks, "pass_at_k"))
    for title, rows in _groups(content["differences"], "{model} − {base} on {problems}: pass@k in points").items():
        console.print(f"\n{title}, paired by problem, 95 % intervals", highlight=False, markup=False)
        console.print(_grid(rows, ks, "difference"))


def _groups(rows: Sequence[Row], title: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(title.format(**row), []).append(row)
    return groups


def _grid(rows: Sequence[Row], ks: Sequence[int], value: str) -> Table:
    signed = value == "difference"
    table = new_table("level")
    table.add_column("n", justify="right")
    largest = len(rows[0]["k"])
    shown = [k for k in ks if k <= largest]
    for k in shown:
        table.add_column(f"k={k}", justify="right")
    if signed:
        table.add_column("crosses at k", justify="right")
    for row in rows:
        cells = [_cell(row[value][k - 1], row["low"][k - 1], row["high"][k - 1], signed=signed) for k in shown]
        crossing = [crossing_text(row["crossover"], largest)] if signed else []
        table.add_row(str(row["level"] or "all"), str(row["n_problems"]), *cells, *crossing)
    return table


def crossing_text(crossed: Row | None, largest: int) -> str:
    """``12`` with its interval below, ``> 128`` for an end beyond the largest k; – if the curves do not cross."""
    if crossed is None:
        return "–"
    ends = (str(crossed[end]) if crossed[end] is not None else f"> {largest}" for end in ("low", "high"))
    return f"{crossed['k']}\n{' … '.join(ends)}"


def _cell(value: float, low: float, high: float, *, signed: bool) -> str:
    if signed:
        return f"{100 * value:+.1f}\n{100 * low:+.0f} {100 * high:+.0f}"
    return f"{100 * value:.1f}\n{100 * low:.0f}–{100 * high:.0f}"
