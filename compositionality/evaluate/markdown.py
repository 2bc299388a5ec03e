"""The summary as markdown, for a file of its own or for a marked place in another one."""

from collections.abc import Iterator
from pathlib import Path

from compositionality.data.artefact import write_text
from compositionality.errors import UserError
from compositionality.evaluate.seeds_table import (
    Summary,
    claim_columns,
    claims_heading,
    comparison_text,
    heading,
    level_name,
    levels_of,
    points,
    share_cell,
    verdict_cell,
)

BEGIN, END = "<!-- accuracy over seeds: made by examples/summarise_seeds.py -->", "<!-- end of accuracy over seeds -->"


def write_markdown(path: Path, summary: Summary) -> None:
    """Write the tables to ``path``; in a file that is there, only between its two marks. UserError if it has none."""
    text = f"{BEGIN}\n{markdown(summary)}{END}\n"
    if path.is_file():
        old = path.read_text()
        before, begin, rest = old.partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise UserError(f"{path}: has no place for the tables; put the lines {BEGIN} and {END} in it")
        text = before + text.rstrip("\n") + after
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def markdown(summary: Summary) -> str:
    """A table of accuracies for every problem file, and one of the claims."""
    return "\n".join(_lines(summary))


def _lines(summary: Summary) -> Iterator[str]:
    models = summary["models"]
    for problems in dict.fromkeys(row["problems"] for row in summary["accuracy"]):
        rows = [row for row in summary["accuracy"] if row["problems"] == problems]
        title = heading(rows)
        yield from (
            "",
            f"{title[0].upper()}{title[1:]}:",
            "",
            _line(["level", *models]),
            _line(["---"] * (len(models) + 1)),
        )
        for (level, source), cells in levels_of(rows).items():
            yield _line([level_name(level, source), *(share_cell(cells.get(model)) for model in models)])
    yield from _claim_lines(summary)
    yield ""
    yield ""


def _claim_lines(summary: Summary) -> Iterator[str]:
    columns = claim_columns(summary)
    title = claims_heading(summary)
    names = ["claim", "measured", *(title for title, *_ in columns)]
    yield from ("", f"{title[0].upper()}{title[1:]}:", "", _line(names), _line(["---"] * len(names)))
    for claim in summary["claims"]:
        verdicts = (f"**{claim[key]}**" for *_, key in columns)
        yield _line([f"**{claim['claim']}** {claim['text']}", "", *verdicts])
        for one in claim["comparisons"]:
            cells = (verdict_cell(one, *keys) for _, *keys in columns)
            yield _line([comparison_text(one), points(one), *cells])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
