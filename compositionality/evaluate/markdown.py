"""The summary as markdown, for a file of its own or for a marked place in another one: one place for each study."""

from collections.abc import Iterator
from pathlib import Path

from compositionality.data.artefact import write_text
from compositionality.errors import UserError
from compositionality.evaluate.seeds_table import Summary, by_functions, heading, level_name, levels_of, share_cell


def marks(place: str) -> tuple[str, str]:
    """The lines before and after what a summary makes; a file with several such places has names for them."""
    what = f"tables of {place}" if place else "tables"
    return f"<!-- {what}: made by a script -->", f"<!-- end of {what} -->"


def write_markdown(path: Path, summary: Summary, place: str = "") -> None:
    """Write the tables to ``path``; in a file that is there, only between the marks of ``place``."""
    write_between_marks(path, place, markdown(summary))


def write_between_marks(path: Path, place: str, text: str) -> None:
    """Make ``path``, or replace what stands between the two marks in it. UserError if it has none of that name."""
    first, last = marks(place)
    text = f"{first}\n{text}{last}\n"
    if path.is_file():
        old = path.read_text()
        before, begin, rest = old.partition(first)
        _, end, after = rest.partition(last)
        if not begin or not end:
            raise UserError(f"{path}: has no place for the tables; put the lines {first} and {last} in it")
        text = before + text.rstrip("\n") + after
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def markdown(summary: Summary) -> str:
    """A table of accuracies for every kind of functions."""
    return "\n".join(_lines(summary))


def _lines(summary: Summary) -> Iterator[str]:
    models = summary["models"]
    for rows in by_functions(summary["accuracy"]):
        title = heading(rows, summary)
        yield from (
            "",
            f"{title[0].upper()}{title[1:]}:",
            "",
            table_line(["level", *models]),
            table_line(["---"] * (len(models) + 1)),
        )
        for (level, source), cells in levels_of(rows).items():
            yield table_line([level_name(level, source), *(share_cell(cells.get(model)) for model in models)])
    yield ""
    yield ""


def table_line(cells: list[str]) -> str:
    """One row of a table."""
    return f"| {' | '.join(cells)} |"
