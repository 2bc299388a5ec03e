"""Tables of what the training of every arm did; a warning for an arm that no update changed."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import pandas as pd
from rich.console import Console

from compositionality.evaluate.frames import Row, markdown_lines, rich_table
from compositionality.types import TrainingReport

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


def print_training(reports: Reports, console: Console) -> None:
    """The table, if there is any report, and the warnings."""
    if any(reports.values()):
        console.print("training of the arms", highlight=False)
        console.print(rich_table(training_frame(reports), "arm"))
    for line in warnings(reports):
        console.print(f"warning: {line}", highlight=False)


def training_markdown(reports: Reports) -> list[str]:
    """The same as markdown."""
    if not any(reports.values()):
        return []
    lines = ["", "Training of the arms:", "", *markdown_lines(training_frame(reports), "arm")]
    return [*lines, *(text for line in warnings(reports) for text in ("", f"**Warning:** {line}"))]


def training_frame(reports: Reports) -> pd.DataFrame:
    """A line for each arm, a column for each count that is known: of several seeds the least and the most."""
    arms = list(dict.fromkeys(arm for of_seed in reports.values() for arm in of_seed))
    rows = [[of_seed.get(arm, {}) for of_seed in reports.values()] for arm in arms]
    names = [name for name in COUNTS if any(one.get(name) is not None for row in rows for one in row)]
    cells = {COUNTS[name]: [_cell([one.get(name) for one in row]) for row in rows] for name in names}
    cells["entropy"] = [_entropies(row) for row in rows]
    return pd.DataFrame(cells, arms)


def _cell(values: Sequence[int | None]) -> str:
    """``1,234``; of several seeds that differ ``83–95``; – for what is not known."""
    known = [value for value in values if value is not None]
    return "–".join(f"{value:,}" for value in dict.fromkeys((min(known), max(known)))) if known else "–"


def _entropies(reports: Sequence[Row]) -> str:
    """``0.81→0.60``: in the first and in the last update, means over the seeds."""
    ends = [(one["first_entropy"], one["last_entropy"]) for one in reports if one.get("last_entropy") is not None]
    return "→".join(f"{fmean(end):.2f}" for end in zip(*ends, strict=True)) or "–"


def warnings(reports: Reports) -> Iterator[str]:
    """A line for every arm, and seed, that no update changed."""
    for seed, of_seed in reports.items():
        for arm, report in of_seed.items():
            if TrainingReport(**report).changed_nothing:
                where = f" in {seed}" if seed else ""
                yield f"{arm}{where}: none of its {report['updates']:,} updates had signal; it is the model it began as"
