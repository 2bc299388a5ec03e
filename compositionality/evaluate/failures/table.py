"""The table on a screen: classes × models at one level."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from compositionality.console import new_console, new_table
from compositionality.tasks.string.diagnosis.trace import Fault
from compositionality.types import FAILURES, Failure


def print_failures(summary: Mapping[str, Any], level: int) -> None:
    """Print a table for every problem file that has this level, and the agreement with the judge."""
    console = new_console()
    for problems in dict.fromkeys(row["problems"] for row in summary["shares"] if row["level"] == level):
        rows = [row for row in summary["shares"] if (row["problems"], row["level"]) == (problems, level)]
        console.print(f"\n{problems}, level {level}: % of responses [95 % interval], {rows[0]['n_problems']} problems")
        console.print(_table(rows, summary))
        slips = [row for row in summary["faults"] if (row["class"], row["fault"]) == (Failure.ATOMIC, Fault.MISCOPIED)]
        console.print(_line("right functions in the right order, whatever the strings", summary["composed"], rows[0]))
        console.print(_line("atomic error by miscopying the string of the step before", slips, rows[0]))
    judge = summary["judge"]
    if judge:
        kappa = "undefined" if judge["kappa"] is None else "{kappa:.2f} [{low:.2f}, {high:.2f}]".format(**judge)
        agreed = "–" if judge["agreement"] is None else f"{100 * judge['agreement']:.1f} %"
        console.print(
            f"\njudge {judge['model']}: {judge['n']} responses, agreement {agreed}, Cohen's kappa {kappa}, "
            f"{judge['malformed']} malformed answers left out"
        )


def _table(rows: list[dict[str, Any]], summary: Mapping[str, Any]) -> Table:
    cells = {(row["class"], row["model"]): row for row in rows}
    models = [model for model in summary["models"] if (FAILURES[0], model) in cells]
    table = new_table()
    table.add_column("class")
    for model in models:
        table.add_column(model, justify="right", overflow="fold")
    for kind in FAILURES:
        table.add_row(kind.replace("_", " "), *(_cell(cells[kind, model]) for model in models))
    return table


def _cell(row: Mapping[str, Any]) -> str:
    return f"{100 * row['share']:.1f} [{100 * row['low']:.0f}–{100 * row['high']:.0f}]"


def _line(what: str, rows: Sequence[Mapping[str, Any]], of: Mapping[str, Any]) -> str:
    """Shares of all responses at the same level of the same file."""
    mine = [row for row in rows if (row["problems"], row["level"]) == (of["problems"], of["level"])]
    told = ", ".join(f"{row['model']} {100 * row['share']:.1f}" for row in mine)
    return f"% {what}: {told or 'none'}"
