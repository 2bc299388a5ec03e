"""What is printed for people: one look for all tables, and all their columns where the output is a file."""

import re

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

COLUMNS_IN_A_FILE = 160


def new_console() -> Console:
    """Return the terminal, or a file of 160 columns; text is printed as it is."""
    console = Console(markup=False, highlight=False)
    return console if console.is_terminal else Console(markup=False, highlight=False, width=COLUMNS_IN_A_FILE)


def new_table(*titles: str, title: str | None = None) -> Table:
    """Return a table without lines between columns, ``titles`` above the first of them; narrow columns break words."""
    columns = (Column(name, overflow="fold") for name in titles)
    return Table(*columns, title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts func_10 after func_9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
