"""Tables of results as frames of text: printed by rich, written as markdown or CSV."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd
import yaml  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from compositionality.console import new_table
from compositionality.evaluate.types import QUERY_VALUES
from compositionality.stats.estimate import NESTED, PROBLEMS, SEEDS_AND_PROBLEMS
from compositionality.train.training_report import TrainingReport

Row = Mapping[str, Any]
WIDTH = 100  # columns of a terminal on which tables of claims fit
TITLES: dict[str, str] = yaml.safe_load((Path(__file__).parents[1] / "config/groups.yaml").read_text())
"""Titles of groups of problems."""
ALL = "all levels"
WORDS = {
    "accuracy": "% correct",
    "names_in_order": "% with the functions' names in order",
    "handed_on": "% that also apply each function to the result before it",
    "right_chain": "% with every step right",
    "chains_read": "% whose steps could be read; nothing is said of them below four in five",
    "canonical": "% of the right answers that are the gold solution, letter by letter",
    "difference": "difference to {base} in points, paired by problem",
}
"""Descriptions of the lists of a summary."""
INTERVALS = {
    PROBLEMS: "same models, other problems: Wilson's for shares, Student's for differences, Tango's where next to none "
    "differ; over clusters of problems that share a composition",
    SEEDS_AND_PROBLEMS: "other seeds and problems: two-way random effects, Student's t for seeds and for problems, in "
    "quadrature; where one seed in four fails, it covers less (compositionality/stats/README.md)",
    NESTED: "other seeds, splits and problems: Student's t over the means of the seeds; where one seed in four fails, "
    "it covers less (compositionality/stats/README.md)",
}
"""Descriptions of the values in the column ``interval`` of tables."""
Reports = Mapping[str, Mapping[str, Row]]  # training reports as JSON has them, by seed and arm
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
NOT_TESTABLE = "not testable"  # instead of the figure of an RL arm in which no group had signal


def rich_table(frame: pd.DataFrame, title: str = "") -> Table:
    """Return the frame as a table, with its index on the left under ``title`` and all other columns aligned right."""
    table = new_table(title)
    for name in frame.columns:
        table.add_column(str(name), justify="right", overflow="fold")
    for name, *cells in frame.itertuples():
        table.add_row(str(name), *map(str, cells))
    return table


def markdown_lines(frame: pd.DataFrame, title: str = "") -> list[str]:
    """Return the frame as lines of a markdown table, its index under ``title``."""
    heads = [title, *map(str, frame.columns)]
    lines = [heads, ["---"] * len(heads), *([str(name), *map(str, cells)] for name, *cells in frame.itertuples())]
    return [f"| {' | '.join(cells)} |".replace("\n", "<br>") for cells in lines]


def csv_text(rows: Any) -> str:
    """Return rows, or a frame, as CSV; lists become JSON, None an empty cell."""
    frame = pd.DataFrame(rows, dtype=object)
    for name in frame.columns:
        frame[name] = [json.dumps(cell) if isinstance(cell, list | dict) else cell for cell in frame[name]]
    return str(frame.to_csv(index=False, lineterminator="\n"))


def summary_tables(summary: Row) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield heading and cells (levels × models) for every file, group and measured entry of ``WORDS``."""
    absent = not_testable(summary["training"])
    cells = pd.DataFrame(
        {**row, "value": value, "cell": NOT_TESTABLE if row["model"] in absent else share_cell(row, value)}
        for value in WORDS
        for row in summary.get(value, ())
    )
    for (file, group), rows in cells.groupby(["problems", "group"], sort=False):
        title = TITLES.get(group, group)
        if cells.loc[cells["group"] == group, "problems"].nunique() > 1:
            title += f" ({file})"
        for value, shown in rows.assign(line=_line_names(rows)).groupby("value", sort=False):
            last = shown["line"] == ALL
            shown = shown.assign(last=last).sort_values(["last", "level"], kind="stable")
            table = shown.pivot(index="line", columns="model", values="cell").fillna("–")
            models = [model for model in summary["models"] if model in table]
            words = WORDS[value].format(base=summary["models"][0])
            yield (
                f"{title}: {words}, {_design(shown, summary['sampling'])}",
                table.reindex(index=shown["line"].unique(), columns=models),
            )


def _line_names(rows: pd.DataFrame) -> list[str]:
    """Return names of lines: ``L2``, ``L2 SOURCE`` (several in a level), the group (no levels), or ``ALL``."""
    sets = rows[["level", "data_source"]].drop_duplicates()
    sources = sets.loc[sets["data_source"] != "", "level"].value_counts()
    names = []
    for group, level, source in rows[["group", "level", "data_source"]].itertuples(index=False):
        name = f"L{level}" if level else group
        pool = len(sets) > 1 and (level, source) == (0, "")
        names.append(ALL if pool else f"{name} {source}" if sources.get(level, 0) > 1 else name)
    return names


def _design(rows: pd.DataFrame, sampling: Row) -> str:
    n_seeds, answers = int(rows["n_seeds"].iloc[0]), sampling["n_samples"]
    seeds = f"mean of {n_seeds} seeds" if n_seeds > 1 else "one seed"
    kind = next(iter(rows["interval"].dropna()), PROBLEMS)
    sizes = rows.loc[rows["line"] != ALL, "n_problems"]
    n = " to ".join(str(size) for size in dict.fromkeys((sizes.min(), sizes.max())))
    return f"{seeds} [95 % interval over {kind}], n = {n}" + (f", {answers} answers to each" if answers > 1 else "")


def summary_markdown(summary: Row) -> str:
    """Return the tables of a summary, including training, as markdown."""
    lines: list[str] = []
    for title, cells in summary_tables(summary):
        lines += ["", f"{title[0].upper()}{title[1:]}:", "", *markdown_lines(cells, "level")]
    if any(summary["training"].values()):
        lines += ["", "Training of the arms:", "", *markdown_lines(training_frame(summary["training"]), "arm")]
    lines += [text for line in warnings(summary["training"]) for text in ("", f"**Warning:** {line}")]
    return "\n".join([*lines, "", ""])


def print_tables(summary: Row, console: Console) -> None:
    """Print the tables of a summary, with as many models side by side as fit."""
    for title, cells in summary_tables(summary):
        console.print(f"\n{title}")
        for block in _blocks(cells, console.width):
            console.print(rich_table(block, "level"))
    if any(summary["training"].values()):
        console.print("training of the arms")
        console.print(rich_table(training_frame(summary["training"]), "arm"))
    for line in warnings(summary["training"]):
        console.print(f"warning: {line}")


def _blocks(cells: pd.DataFrame, width: int) -> Iterator[pd.DataFrame]:
    """Yield blocks of as many columns as fit into ``width``."""
    widths = [max(len(line) for cell in (name, *cells[name]) for line in cell.split("\n")) + 1 for name in cells]
    room, start = width - max(map(len, cells.index)) - 1, 0
    for end in range(1, len(widths) + 1):
        if end == len(widths) or sum(widths[start : end + 1]) > room:
            yield cells.iloc[:, start:end]
            start = end


def share_cell(row: Row, value: str) -> str:
    """Return ``64 [58–70]``, or ``4.3 [2–9]`` below 10 %, with the seeds on the next line; – if not measured."""
    if row[value] is None:
        return "–"
    share, low, high = (100 * row[key] for key in (value, "low", "high"))
    if value == "difference":
        return f"{share:+.1f} [{low:+.0f}, {high:+.0f}]\n{by_seed(row, '+')}".rstrip()
    return f"{share:.{0 if share >= 9.95 else 1}f} [{low:.0f}–{high:.0f}]\n{by_seed(row)}".rstrip()


def plural(n: int, noun: str) -> str:
    """Return ``1 seed``, ``3 seeds``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def decimals(row: Row) -> int:
    """Return the number of decimals (in %) of an interval: 0 for shares, 2 for values of queries, often small."""
    return 2 if row.get("measure") in QUERY_VALUES else 0


def by_seed(row: Row, sign: str = "") -> str:
    """Return the values of several seeds in %, ``60 66 65``; with nested splits ``58/62 66/66``."""
    seeds = row.get("splits") or [[value] for value in row.get("values") or ()]
    if sum(map(len, seeds)) <= 1:
        return ""
    form = f"{sign}.{decimals(row)}f"
    return " ".join("/".join(format(100 * value, form) for value in splits) for splits in seeds)


def training_frame(reports: Reports) -> pd.DataFrame:
    """Return a row for each arm, a column for each known count, as a range over seeds (``least–most``).

    ``entropy``: in the first and in the last update, means over the seeds.
    """
    rows = [{"arm": arm, **report} for by_arm in reports.values() for arm, report in by_arm.items()]
    counts_by_arm = pd.DataFrame(rows, columns=["arm", *(field.name for field in fields(TrainingReport))])
    counts_by_arm = counts_by_arm.set_index("arm").astype(float)
    arms, cells = counts_by_arm.groupby(level="arm", sort=False), pd.DataFrame(index=counts_by_arm.index.unique())
    for name, title in COUNTS.items():
        counts = arms[name].agg(["min", "max"]).dropna()
        if not counts.empty:
            texts = ["–".join(dict.fromkeys(map("{:,.0f}".format, pair))) for pair in counts.to_numpy()]
            cells[title] = pd.Series(texts, counts.index)
    entropies = counts_by_arm[["first_entropy", "last_entropy"]].dropna().groupby(level="arm").mean()
    ends = {arm: f"{first:.2f}→{last:.2f}" for arm, first, last in entropies.itertuples()}
    cells["entropy"] = pd.Series(ends, dtype=object)
    return cells.fillna("–")


def not_testable(reports: Reports) -> set[str]:
    """Return the RL arms in which no group had signal in any seed."""
    runs = [(arm, TrainingReport(**report)) for by_arm in reports.values() for arm, report in by_arm.items()]
    return {arm for arm, _ in runs} - {arm for arm, report in runs if not report.not_testable}


def warnings(reports: Reports) -> Iterator[str]:
    """Yield a line for every arm and seed without an update with signal."""
    for seed, by_arm in reports.items():
        for arm, report in by_arm.items():
            if TrainingReport(**report).updates_with_signal == 0:
                place = f" in {seed}" if len(reports) > 1 else ""
                yield f"{arm}{place}: none of {report['updates']:,} updates had signal; its weights are unchanged"
