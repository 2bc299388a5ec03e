"""Pandas frames of cells, printed by rich or written as markdown between marks in a file."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from compositionality.console import new_table
from compositionality.data.artefact import write_text
from compositionality.data.json_files import read_text
from compositionality.errors import UserError
from compositionality.types import NESTED, PROBLEMS, SEEDS_AND_PROBLEMS

Row = Mapping[str, Any]
Cell = Callable[[Row], str]
INTERVALS = {
    PROBLEMS: "same models, other problems: Wilson's for shares, Student's for differences, Tango's where next to none "
    "differ; over clusters of problems that share a composition",
    SEEDS_AND_PROBLEMS: "other seeds and problems: two-way random effects, Student's t for seeds and for problems, in "
    "quadrature; where one seed in four fails, it covers 88 to 91 % or less",
    NESTED: "other seeds, splits and problems: Student's t over the means of the seeds; where one seed in four fails, "
    "it covers 88 to 91 % or less",
}
"""What the column ``interval`` of tables says."""


def grid(rows: Iterable[Row], down: Cell, cell: Cell, across: str = "model") -> pd.DataFrame:
    """Return cells with ``down`` as lines and the values of ``across`` as columns, in order of first appearance."""
    cells = [(down(row), row[across], cell(row)) for row in rows]
    frame = pd.DataFrame(cells, columns=["down", "across", "cell"])
    wide = frame.drop_duplicates(["down", "across"], keep="last").pivot(index="down", columns="across", values="cell")
    return wide.reindex(index=frame["down"].unique(), columns=frame["across"].unique()).fillna("–")


def rich_table(frame: pd.DataFrame, title: str = "") -> Table:
    """Return the frame with its index on the left, under ``title``; all other columns aligned right."""
    table = new_table()
    table.add_column(title, overflow="fold")
    for name in frame.columns:
        table.add_column(str(name), justify="right", overflow="fold")
    for name, *cells in frame.itertuples():
        table.add_row(str(name), *map(str, cells))
    return table


def markdown_lines(frame: pd.DataFrame, title: str = "") -> list[str]:
    """Return the lines of the frame as a table, its index under ``title``."""
    heads = [title, *map(str, frame.columns)]
    lines = [heads, ["---"] * len(heads), *([str(name), *map(str, cells)] for name, *cells in frame.itertuples())]
    return [f"| {' | '.join(cells)} |".replace("\n", "<br>") for cells in lines]


def csv_text(rows: Any) -> str:
    """Return rows, or a frame, as CSV; lists as JSON, nothing for None."""
    frame = pd.DataFrame(rows, dtype=object)
    for name in frame.columns:
        frame[name] = [json.dumps(cell) if isinstance(cell, list | dict) else cell for cell in frame[name]]
    return str(frame.to_csv(index=False, lineterminator="\n"))


def marks(place: str) -> tuple[str, str]:
    """Return the lines before and after tables made by a script; several places in a file have names."""
    what = f"tables of {place}" if place else "tables"
    return f"<!-- {what}: made by a script -->", f"<!-- end of {what} -->"


def write_between_marks(path: Path, place: str, text: str) -> None:
    """Make ``path``, or replace what stands between the two marks in it. UserError if it has none of that name."""
    first, last = marks(place)
    text = f"{first}\n{text}{last}\n"
    if path.is_file():
        old = read_text(path, "save it as UTF-8")
        before, begin, rest = old.partition(first)
        _, end, after = rest.partition(last)
        if not begin or not end:
            raise UserError(f"{path}: has no place for the tables; put the lines {first} and {last} in it")
        text = before + text.rstrip("\n") + after
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
