"""The tables of results: of one evaluation, and of several seeds."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill

import pandas as pd
import yaml  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from compositionality.console import new_console
from compositionality.evaluate.frames import Cell, Row, grid, in_blocks, markdown_lines, rich_table
from compositionality.evaluate.table import REASONS
from compositionality.evaluate.training import print_training, training_markdown
from compositionality.types import PROBLEMS, QUERY_VALUES, TrainingReport

ALL, LEVEL, GROUP, SKILL = "all", "level", "group", "skill"
"""What a row of accuracy is about: a whole problem file, one group at one level of it, one of several groups at all its
levels, or the problems that ask for a skill."""
WIDTH = 100
"""Columns of a terminal on which tables of seeds and claims fit."""
TITLES: dict[str, str] = yaml.safe_load((Path(__file__).parents[1] / "config/groups.yaml").read_text())
"""Of groups of problems."""
COMPOSES = "right functions in the right order, each on the result before it"
"""What a composed response has."""
NOT_TESTABLE = "not testable"
"""In place of a figure of an arm of RL in which no group had signal."""
ARMS_AT_ONCE, DIFFERENCES_AT_ONCE, WIDEST_NAME = 3, 2, 18
"""Of the tables of one evaluation, which fit on 80 columns."""
Reports = Mapping[str, Row]
"""Training reports by arm, as JSON has them."""

# One evaluation


def print_results(
    rows: Sequence[Row], console: Console | None = None, *, by_skill: bool = False, reports: Sequence[Reports] = ()
) -> None:
    """For every problem file: accuracy by level (by skill), differences to the first checkpoint, reasons."""
    console, rows = console or new_console(), _testable(rows, reports)
    models = list(dict.fromkeys(row["model"] for row in rows))
    for problems in dict.fromkeys(row["problems"] for row in rows):
        _print_file(console, models, [row for row in rows if row["problems"] == problems], by_skill=by_skill)


def _print_file(console: Console, models: Sequence[str], rows: Sequence[Row], *, by_skill: bool) -> None:
    first = rows[0]
    console.print(
        f"\n{first['problems']}: accuracy in % with 95 % intervals"
        f" ({first['n_samples']} per problem, temperature {first['temperature']:g}, seed {first['seed']})",
        highlight=False,
    )
    levels = [row for by in (LEVEL, GROUP, ALL) for row in rows if row["by"] == by]
    skills = [row for row in rows if row["by"] == SKILL]
    for block in in_blocks(models, ARMS_AT_ONCE):
        console.print(_accuracies(levels, block, "level", _accuracy_cell))
    if any(row["composed"] is not None for row in levels):
        console.print(f"{COMPOSES}, in %", highlight=False)
        for block in in_blocks(models, ARMS_AT_ONCE):
            console.print(_accuracies(levels, block, "level", _composed_cell))
    if len(models) > 1:
        console.print(f"difference to {models[0]}, paired by problem, in points", highlight=False)
        for block in in_blocks(models[1:], DIFFERENCES_AT_ONCE):
            console.print(_accuracies(levels, block, "level", _difference_cell))
    for block in in_blocks(models, ARMS_AT_ONCE) if by_skill and skills else ():
        console.print(_accuracies(skills, block, "skill", _accuracy_cell))
    console.print(_reasons([row for row in rows if row["by"] == ALL]))


def _accuracies(rows: Sequence[Row], models: Sequence[str], title: str, cell: Cell) -> Table:
    mine = [row for row in rows if row["model"] in models]
    name = _line_names(mine, _part_name)
    frame = grid(mine, name, cell)
    frame.columns = pd.Index([fill(name, WIDEST_NAME) for name in frame.columns])
    frame.insert(0, "n", list({name(row): row["n_problems"] for row in mine}.values()))
    return rich_table(frame, title)


def _part_name(row: Row) -> str:
    """``heldout L3``, ``math, all levels``, the skill, or ``all``."""
    if row["by"] == GROUP:
        return f"{row['group']}, all levels"
    return str(row["skill"] or (level_name(row["level"], row["group"], with_group=True) if row["group"] else ALL))


def _testable(rows: Sequence[Row], reports: Sequence[Reports]) -> list[Row]:
    """The rows; those of arms of RL in which no group had signal, in any seed, say so in place of their figures."""
    found: dict[str, list[bool]] = {}
    for of_seed in reports:
        for arm, report in of_seed.items():
            found.setdefault(arm, []).append(TrainingReport(**report).not_testable)
    return [{**row, "absent": NOT_TESTABLE} if all(found.get(row["model"], [False])) else row for row in rows]


def _absent(row: Row, value: str) -> str:
    """What stands in place of a figure; empty where there is one."""
    return str(row.get("absent") or ("–" if row[value] is None else ""))


def _accuracy_cell(row: Row) -> str:
    """``64.1 [58.2–69.6]``."""
    if absent := _absent(row, "accuracy"):
        return absent
    return f"{100 * row['accuracy']:.1f} [{100 * row['low']:.1f}–{100 * row['high']:.1f}]"


def _composed_cell(row: Row) -> str:
    if absent := _absent(row, "composed"):
        return absent
    return f"{100 * row['composed']:.1f} [{100 * row['composed_low']:.1f}–{100 * row['composed_high']:.1f}]"


def _difference_cell(row: Row) -> str:
    """``+3.0 [-1.2, +7.2]``."""
    if absent := _absent(row, "difference"):
        return absent
    low, high = 100 * row["difference_low"], 100 * row["difference_high"]
    return f"{100 * row['difference']:+.1f} [{low:+.1f}, {high:+.1f}]"


def _reasons(rows: Sequence[Row]) -> Table:
    """Mean length and the share of each reason, one row per checkpoint."""
    frame = pd.DataFrame({"tokens": [f"{row['mean_tokens']:.1f}" for row in rows]}, [row["model"] for row in rows])
    for reason in REASONS:
        if any(row[f"share_{reason}"] for row in rows):
            frame[f"{reason.replace('_', ' ')} %"] = [f"{100 * row[f'share_{reason}']:.1f}" for row in rows]
    return rich_table(frame, "checkpoint")


# Several seeds


def print_summary(summary: Row, console: Console) -> None:
    """Accuracy and composed responses by level of every arm, a table of each per group."""
    for value, rows in _summary_tables(summary):
        console.print(f"\n{heading(rows, summary, value)}", highlight=False)
        for models in _blocks(summary["models"]):
            console.print(rich_table(_shares(rows, models, value)))
    print_training(summary["training"], console)


def summary_markdown(summary: Row) -> str:
    """The same tables as markdown."""
    lines: list[str] = []
    for value, rows in _summary_tables(summary):
        title = heading(rows, summary, value)
        frame = _shares(rows, summary["models"], value)
        lines += ["", f"{title[0].upper()}{title[1:]}:", "", *markdown_lines(frame, "level")]
    return "\n".join([*lines, *training_markdown(summary["training"]), "", ""])


def _summary_tables(summary: Row) -> list[tuple[str, list[Row]]]:
    """(accuracy or composed, its rows of a group), group by group."""
    reports = [*summary["training"].values()]
    found = {value: _testable(summary[value], reports) for value in ("accuracy", "composed")}
    tables = [(value, rows) for value in found for rows in by_group(found[value])]
    groups = list(dict.fromkeys(rows[0]["group"] for _, rows in tables))
    return sorted(tables, key=lambda table: groups.index(table[1][0]["group"]))


def by_group(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of the same group, however many problem files they come from."""
    return [[row for row in rows if row["group"] == name] for name in dict.fromkeys(row["group"] for row in rows)]


def group_title(group: str) -> str:
    """``held-out functions`` (config/groups.yaml), or the group's own name."""
    return TITLES.get(group, group)


def heading(rows: Sequence[Row], summary: Row, value: str = "accuracy") -> str:
    """Group, what is shown, seeds, problems, completions of each, and the kind of interval."""
    what = "correct" if value == "accuracy" else f"with the {COMPOSES}"
    first = rows[0]
    answers = summary["sampling"]["n_samples"]
    each = f", {answers} answers to each" if answers > 1 else ""
    seeds = "mean of " + plural(first["n_seeds"], "seed") if first["n_seeds"] > 1 else "one seed"
    kinds = next((row["interval"] for row in rows if row["interval"]), PROBLEMS)
    return f"{group_title(first['group'])}: % {what}, {seeds} [95 % interval over {kinds}], n = {sizes(rows)}{each}"


def sizes(rows: Sequence[Row]) -> str:
    """Problems of a level: ``500``, or ``10 to 128``."""
    counts = [row["n_problems"] for row in rows]
    return " to ".join(str(count) for count in dict.fromkeys((min(counts), max(counts))))


def plural(n: int, noun: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def share_cell(row: Row, value: str = "accuracy") -> str:
    """``64 [58–70]``, or ``4.3 [2–9]`` for less than 10 %; – for what was not measured."""
    if absent := _absent(row, value):
        return absent
    share, low, high = (100 * row[key] for key in (value, "low", "high"))
    cell = f"{share:.{0 if share >= 9.95 else 1}f} [{low:.0f}–{high:.0f}]"
    return f"{cell}\n{values}" if (values := by_seed(row)) else cell


def decimals(row: Row) -> int:
    """Of hundredths in an interval: none of shares, two of values of queries, which may be small."""
    return 2 if row.get("part") in QUERY_VALUES else 0


def by_seed(row: Row, sign: str = "") -> str:
    """The values of several seeds in %, ``60 66 65``; of splits that are theirs alone, ``58/62 66/66 61/69``."""
    seeds = row.get("splits") or [[value] for value in row.get("values") or ()]
    return (
        " ".join("/".join(f"{100 * one:{sign}.{decimals(row)}f}" for one in splits) for splits in seeds)
        if sum(map(len, seeds)) > 1
        else ""
    )


def level_name(level: int, group: str, *, with_group: bool = False) -> str:
    """``L3``, or the group's name where problems have no level."""
    if not level:
        return group
    return f"{group} L{level}" if with_group else f"L{level}"


def _shares(rows: Sequence[Row], models: Sequence[str], value: str = "accuracy") -> pd.DataFrame:
    ordered = sorted(rows, key=lambda row: row["level"])
    name = _line_names(ordered, lambda row: level_name(row["level"], row["group"]))
    return grid(ordered, name, lambda row: share_cell(row, value)).reindex(columns=models)


def _line_names(rows: Sequence[Row], name: Cell) -> Cell:
    """``name``, with the data source where lines of several data sources would have the same one."""
    sources: dict[str, set[str]] = {}
    for row in rows:
        sources.setdefault(name(row), set()).add(row["data_source"])
    return lambda row: f"{name(row)} {row['data_source']}" if len(sources[name(row)]) > 1 else name(row)


def _blocks(models: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many arms side by side as fit: a column is as wide as its name, and no narrower than ``100 [98–100]``."""
    block: list[str] = []
    for model in models:
        if block and 4 + sum(max(12, len(name)) + 1 for name in [*block, model]) > WIDTH:
            yield block
            block = []
        block.append(model)
    yield block
