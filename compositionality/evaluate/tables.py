"""The tables of several seeds and of the training of their arms, on the screen and as markdown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from operator import itemgetter
from pathlib import Path

import pandas as pd
import yaml  # type: ignore[import-untyped]
from rich.console import Console

from compositionality.evaluate.frames import Row, grid, markdown_lines, rich_table
from compositionality.types import PROBLEMS, QUERY_VALUES, TrainingReport

WIDTH = 100
"""Columns of a terminal on which tables of seeds and claims fit."""
TITLES: dict[str, str] = yaml.safe_load((Path(__file__).parents[1] / "config/groups.yaml").read_text())
"""Of groups of problems."""
COMPOSES = "right functions in the right order, each on the result before it"
"""What a composed response has."""
Reports = Mapping[str, Mapping[str, Row]]
"""Training reports as JSON has them, by seed and arm."""
COUNTS = {
    "updates": "updates",
    "updates_without_signal": "without signal",
    "groups": "groups",
    "groups_with_signal": "with signal",
    "completions": "completions",
    "tokens": "loss tokens",
    "rows": "SFT rows",
}
"""Counts of a report, and their titles."""
NOT_TESTABLE = "not testable"
"""In place of a figure of an arm of RL in which no group had signal."""


def print_summary(summary: Row, console: Console) -> None:
    """Print accuracy and composed responses by level of every arm, a table of each per group."""
    for title, cells in _summary_tables(summary):
        console.print(f"\n{title}", highlight=False)
        for models in _blocks(summary["models"]):
            console.print(rich_table(cells[models]))
    print_training(summary["training"], console)


def summary_markdown(summary: Row) -> str:
    """Return the same tables as markdown."""
    lines: list[str] = []
    for title, cells in _summary_tables(summary):
        lines += ["", f"{title[0].upper()}{title[1:]}:", "", *markdown_lines(cells, "level")]
    return "\n".join([*lines, *training_markdown(summary["training"]), "", ""])


def _summary_tables(summary: Row) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield heading and cells, levels by models, of accuracy and then of composed responses; group by group."""
    absent = not_testable(summary["training"])
    for group in dict.fromkeys(row["group"] for row in summary["accuracy"]):
        for value in ("accuracy", "composed"):
            rows = sorted((row for row in summary[value] if row["group"] == group), key=lambda row: row["level"])
            if rows:
                heading = _heading(rows, summary["sampling"]["n_samples"], value)
                yield heading, _cells(rows, value, absent).reindex(columns=summary["models"])


def _cells(rows: Sequence[Row], value: str, absent: set[str]) -> pd.DataFrame:
    """Return the cells of a group; a line is named after its level, and its data source if the level has several."""
    sources = pd.DataFrame(rows).groupby("level")["data_source"].nunique()
    texts = []
    for row in rows:
        name = level_name(row["level"], row["group"])
        line = f"{name} {row['data_source']}" if sources[row["level"]] > 1 else name
        cell = NOT_TESTABLE if row["model"] in absent else share_cell(row, value)
        texts.append({"model": row["model"], "line": line, "cell": cell})
    return grid(texts, itemgetter("line"), itemgetter("cell"))


def _heading(rows: Sequence[Row], answers: int, value: str) -> str:
    """Return group, what is shown, seeds, problems, completions of each, and the kind of interval."""
    group, n_seeds = rows[0]["group"], rows[0]["n_seeds"]
    what = "correct" if value == "accuracy" else f"with the {COMPOSES}"
    seeds = f"mean of {n_seeds} seeds" if n_seeds > 1 else "one seed"
    kind = next((row["interval"] for row in rows if row["interval"]), PROBLEMS)
    sizes = sorted({row["n_problems"] for row in rows})
    n = " to ".join(str(size) for size in dict.fromkeys((sizes[0], sizes[-1])))
    each = f", {answers} answers to each" if answers > 1 else ""
    return f"{TITLES.get(group, group)}: % {what}, {seeds} [95 % interval over {kind}], n = {n}{each}"


def plural(n: int, noun: str) -> str:
    """Return ``1 seed``, ``3 seeds``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def share_cell(row: Row, value: str = "accuracy") -> str:
    """Return ``64 [58–70]``, or ``4.3 [2–9]`` for less than 10 %; – for what was not measured."""
    if row[value] is None:
        return "–"
    share, low, high = (100 * row[key] for key in (value, "low", "high"))
    cell = f"{share:.{0 if share >= 9.95 else 1}f} [{low:.0f}–{high:.0f}]"
    return f"{cell}\n{values}" if (values := by_seed(row)) else cell


def decimals(row: Row) -> int:
    """Return those of hundredths in an interval: none of shares, two of values of queries, which may be small."""
    return 2 if row.get("part") in QUERY_VALUES else 0


def by_seed(row: Row, sign: str = "") -> str:
    """Return the values of several seeds in %, ``60 66 65``; of splits that are theirs alone, ``58/62 66/66``."""
    seeds = row.get("splits") or [[value] for value in row.get("values") or ()]
    if sum(map(len, seeds)) <= 1:
        return ""
    form = f"{sign}.{decimals(row)}f"
    return " ".join("/".join(format(100 * value, form) for value in splits) for splits in seeds)


def level_name(level: int, group: str, *, with_group: bool = False) -> str:
    """Return ``L3`` (``heldout L3``), or the group's name where problems have no level."""
    if not level:
        return group
    return f"{group} L{level}" if with_group else f"L{level}"


def _blocks(models: Sequence[str]) -> Iterator[list[str]]:
    """Yield as many arms side by side as fit: a column is as wide as its name, at least as ``100 [98–100]``."""
    block: list[str] = []
    for model in models:
        if block and 4 + sum(max(12, len(name)) + 1 for name in [*block, model]) > WIDTH:
            yield block
            block = []
        block.append(model)
    yield block


def print_training(reports: Reports, console: Console) -> None:
    """Print the table, if there is any report, and the warnings."""
    if any(reports.values()):
        console.print("training of the arms", highlight=False)
        console.print(rich_table(training_frame(reports), "arm"))
    for line in warnings(reports):
        console.print(f"warning: {line}", highlight=False)


def training_markdown(reports: Reports) -> list[str]:
    """Return the lines of the same table and warnings."""
    if not any(reports.values()):
        return []
    lines = ["", "Training of the arms:", "", *markdown_lines(training_frame(reports), "arm")]
    return [*lines, *(text for line in warnings(reports) for text in ("", f"**Warning:** {line}"))]


def training_frame(reports: Reports) -> pd.DataFrame:
    """Return a line for each arm, a column for each count that is known: of several seeds ``least–most``.

    ``entropy``: of the first and of the last update, means over the seeds.
    """
    rows = [{"arm": arm, **report} for of_seed in reports.values() for arm, report in of_seed.items()]
    known = pd.DataFrame(rows, columns=["arm", *(field.name for field in fields(TrainingReport))])
    known = known.set_index("arm").astype(float)
    arms, cells = known.groupby(level="arm", sort=False), pd.DataFrame(index=known.index.unique())
    for name, title in COUNTS.items():
        counts = arms[name].agg(["min", "max"]).dropna()
        if not counts.empty:
            texts = ["–".join(dict.fromkeys(map("{:,.0f}".format, pair))) for pair in counts.to_numpy()]
            cells[title] = pd.Series(texts, counts.index)
    entropies = known[["first_entropy", "last_entropy"]].dropna().groupby(level="arm").mean()
    ends = {arm: f"{first:.2f}→{last:.2f}" for arm, first, last in entropies.itertuples()}
    cells["entropy"] = pd.Series(ends, dtype=object)
    return cells.fillna("–")


def not_testable(reports: Reports) -> set[str]:
    """Return the arms of RL in which no group had signal, in any seed."""
    each = [(arm, TrainingReport(**report)) for of_seed in reports.values() for arm, report in of_seed.items()]
    return {arm for arm, _ in each} - {arm for arm, report in each if not report.not_testable}


def warnings(reports: Reports) -> Iterator[str]:
    """Yield a line for every arm, and seed, that no update changed."""
    for seed, of_seed in reports.items():
        for arm, report in of_seed.items():
            if TrainingReport(**report).changed_nothing:
                where = f" in {seed}" if seed else ""
                yield f"{arm}{where}: none of its {report['updates']:,} updates had signal; it is the model it began as"
