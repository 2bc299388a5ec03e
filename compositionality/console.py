"""Output for people: one style for all tables, with all their columns if the output is a file."""

import re
from textwrap import fill

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

COLUMNS_IN_A_FILE = 160


def new_console() -> Console:
    """Return a console for the terminal, or 160 columns wide for a file; text is printed unchanged."""
    console = Console(markup=False, highlight=False)
    return console if console.is_terminal else Console(markup=False, highlight=False, width=COLUMNS_IN_A_FILE)


class WholeWords(Table):
    """A table whose columns shrink to whole words, the widest first; if they still do not fit, one line per row."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or its rows as lines that include the titles."""
        for column in self.columns:
            column.min_width = column.max_width = None
        texts = [[str(text) for text in (column.header, *column.cells)] for column in self.columns]
        least = [max(len(word) for text in column for word in (text.split() or [""])) for column in texts]
        widths = [max(len(line) for text in column for line in (text.splitlines() or [""])) for column in texts]
        room = options.max_width - (self.__rich_measure__(console, options.update(width=1000)).maximum - sum(widths))
        while sum(widths) > room and widths != least:
            widest = max(range(len(widths)), key=lambda place: (widths[place] > least[place], widths[place]))
            widths[widest] -= 1
        if sum(widths) <= room:
            for column, width in zip(self.columns, widths, strict=True):
                column.min_width = column.max_width = width
            yield from super().__rich_console__(console, options)
            return
        if self.title:
            yield Text(str(self.title))
        for row in zip(*texts, strict=True):
            if row != (titles := tuple(column[0] for column in texts)):
                cells = (f"{title} {cell}".strip() for title, cell in zip(titles, row, strict=True))
                line = ", ".join(filter(None, cells))
                words = fill(
                    line, options.max_width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
                )
                yield Text(words, no_wrap=True, overflow="ignore")


def new_table(*titles: str, title: str | None = None) -> Table:
    """Return a table without lines between columns, with ``titles`` for the first ones; words are not broken."""
    columns = (Column(name, overflow="fold") for name in titles)
    return WholeWords(*columns, title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts func_10 after func_9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
