"""The summary on a screen of 100 columns: arms across, levels down."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from compositionality.console import new_table
from compositionality.stats.random_effects import PROBLEMS

WIDTH = 100
TITLES = {"trained": "trained functions", "heldout": "held-out functions", "countdown": "Countdown"}
Summary = Mapping[str, Any]


def print_summary(summary: Summary, console: Console) -> None:
    """Print accuracy by level of every arm, one table a kind of functions."""
    for rows in by_functions(summary["accuracy"]):
        console.print(f"\n{heading(rows, summary)}", highlight=False)
        for models in _blocks(summary["models"]):
            console.print(_grid(rows, models))


def by_functions(rows: Sequence[Summary]) -> list[list[Summary]]:
    """Rows about the same kind of functions, however many problem files they come from."""
    kinds = dict.fromkeys(row["functions"] for row in rows)
    return [[row for row in rows if row["functions"] == kind] for kind in kinds]


def heading(rows: Sequence[Summary], summary: Summary) -> str:
    """What a table of accuracies shows: functions, seeds, problems, answers to each, and the kind of interval."""
    first = rows[0]
    what = TITLES.get(first["functions"], first["functions"])
    answers = summary["sampling"]["n_samples"]
    each = f", {answers} answers to each" if answers > 1 else ""
    seeds = "mean of " + plural(first["n_seeds"], "seed") if first["n_seeds"] > 1 else "one seed"
    kinds = next((row["interval"] for row in rows if row["interval"]), PROBLEMS)
    return f"{what}: % correct, {seeds} [95 % interval over {kinds}], n = {sizes(rows)}{each}"


def sizes(rows: Sequence[Summary]) -> str:
    """How many problems a level: ``500``, or ``10 to 128``."""
    counts = [row["n_problems"] for row in rows]
    return " to ".join(str(count) for count in dict.fromkeys((min(counts), max(counts))))


def plural(n: int, noun: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def share_cell(row: Mapping[str, Any] | None) -> str:
    """``64 [58–70]``, or ``4.3 [2–9]`` for less than 10 %; – for what was not measured."""
    if row is None or row["accuracy"] is None:
        return "–"
    value, low, high = (100 * row[key] for key in ("accuracy", "low", "high"))
    return f"{value:.{0 if value >= 9.95 else 1}f} [{low:.0f}–{high:.0f}]"


def levels_of(rows: Sequence[Summary]) -> dict[tuple[int, str], dict[str, Summary]]:
    """Rows by level and model, levels in order."""
    found: dict[tuple[int, str], dict[str, Summary]] = {}
    for row in sorted(rows, key=lambda row: (row["level"], row["data_source"])):
        found.setdefault((row["level"], row["data_source"]), {})[row["model"]] = row
    return found


def level_name(level: int, data_source: str) -> str:
    """``L3``, or the data source's name where it holds no level."""
    return f"L{level}" if level else data_source


def _grid(rows: Sequence[Summary], models: Sequence[str]) -> Table:
    table = new_table()
    table.add_column("", overflow="fold")
    for model in models:
        table.add_column(model, justify="right", overflow="fold")
    for level, cells in levels_of(rows).items():
        table.add_row(level_name(*level), *(share_cell(cells.get(model)) for model in models))
    return table


def _blocks(models: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many arms side by side as fit: a column is as wide as its name, and no narrower than ``100 [98–100]``."""
    block: list[str] = []
    for model in models:
        if block and 4 + sum(max(12, len(name)) + 1 for name in [*block, model]) > WIDTH:
            yield block
            block = []
        block.append(model)
    yield block
