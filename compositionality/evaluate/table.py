"""The results on a screen of 80 columns: one row per level, one column per checkpoint."""

import re
from collections.abc import Iterable, Sequence
from textwrap import fill

from rich.console import Console
from rich.table import Table

from compositionality.console import new_console, new_table
from compositionality.evaluate.results import ALL, FUNCTION, LEVEL, Row
from compositionality.evaluate.tally import REASONS

COLUMNS_AT_ONCE = 3
DIFFERENCES_AT_ONCE = 2
WIDEST_NAME = 18
_TASK_NAME = re.compile(r"^(codeio-forward-incomplete|string|reasoning-gym-countdown|countdown)-")


def print_results(rows: Sequence[Row], console: Console | None = None, *, by_function: bool = False) -> None:
    """Print, for every problem file: accuracy by level (by function), differences to the first checkpoint, verdicts."""
    console = console or new_console()
    models = list(dict.fromkeys(row["model"] for row in rows))
    for problems in dict.fromkeys(row["problems"] for row in rows):
        mine = [row for row in rows if row["problems"] == problems]
        _print_file(console, problems, models, mine, by_function=by_function)


def _print_file(
    console: Console, problems: str, models: Sequence[str], rows: Sequence[Row], *, by_function: bool
) -> None:
    first = rows[0]
    console.print(
        f"\n{problems}: accuracy in % with 95 % intervals"
        f" ({first['n_samples']} per problem, temperature {first['temperature']:g}, seed {first['seed']})",
        highlight=False,
    )
    for block in _blocks(models, COLUMNS_AT_ONCE):
        console.print(_grid(rows, block, (LEVEL, ALL), "accuracy", "low", "high"))
    if len(models) > 1:
        console.print(f"difference to {models[0]}, paired by problem, in points", highlight=False)
        for block in _blocks(models[1:], DIFFERENCES_AT_ONCE):
            console.print(_grid(rows, block, (LEVEL, ALL), "difference", "difference_low", "difference_high"))
    if by_function and any(row["kind"] == FUNCTION for row in rows):
        for block in _blocks(models, COLUMNS_AT_ONCE):
            console.print(_grid(rows, block, (FUNCTION,), "accuracy", "low", "high"))
    console.print(_verdicts([row for row in rows if row["kind"] == ALL]))


def _grid(rows: Iterable[Row], models: Sequence[str], kinds: Sequence[str], value: str, low: str, high: str) -> Table:
    """Groups down, checkpoints across."""
    cells = {(row["kind"], row["group"], row["model"]): row for row in rows}
    table = new_table()
    table.add_column(kinds[0], overflow="fold")
    table.add_column("n", justify="right")
    for model in models:
        table.add_column(fill(model, WIDEST_NAME), justify="right", overflow="fold")
    signed = value == "difference"
    for kind in kinds:
        for group in dict.fromkeys(group for key, group, _ in cells if key == kind):
            shown = [cells[kind, group, model] for model in models]
            texts = [_cell(row[value], row[low], row[high], signed=signed) for row in shown]
            table.add_row(_TASK_NAME.sub("", group), str(shown[0]["n_problems"]), *texts)
    return table


def _blocks(models: Sequence[str], at_once: int) -> list[Sequence[str]]:
    return [models[start : start + at_once] for start in range(0, len(models), at_once)]


def _cell(value: float | None, low: float | None, high: float | None, *, signed: bool) -> str:
    """``64.1 [58.2–69.6]``, or with signs ``+3.0 [-1.2, +7.2]``."""
    if value is None or low is None or high is None:
        return "–"
    if signed:
        return f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
    return f"{100 * value:.1f} [{100 * low:.1f}–{100 * high:.1f}]"


def _verdicts(rows: Sequence[Row]) -> Table:
    """Mean length and the share of each verdict, one row per checkpoint."""
    seen = [reason for reason in REASONS if any(row[f"share_{reason}"] for row in rows)]
    table = new_table()
    table.add_column("checkpoint", overflow="fold")
    table.add_column("tokens", justify="right")
    for reason in seen:
        table.add_column(f"{reason.replace('_', ' ')} %", justify="right")
    for row in rows:
        shares = (f"{100 * row[f'share_{reason}']:.1f}" for reason in seen)
        table.add_row(row["model"], f"{row['mean_tokens']:.1f}", *shares)
    return table
