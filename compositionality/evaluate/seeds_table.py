"""The summary on a screen of 100 columns: arms across, levels down; then the claims with their verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from compositionality.evaluate.crossed import PROBLEMS

WIDTH = 100
TITLES = {"trained": "trained functions", "heldout": "held-out functions", "countdown": "Countdown"}
MARKS = {"replicates": "✓", "does not replicate": "✗", "undecided": "?", "not measured": "·"}
LEGEND = "✓ replicates, ✗ does not, ? undecided"
COLOURS = {"replicates": "green", "does not replicate": "red", "undecided": "yellow", "not measured": "dim"}
Summary = Mapping[str, Any]


def print_summary(summary: Summary, console: Console) -> None:
    """Print accuracy by level of every arm, one table a problem file, and the claims."""
    for problems in dict.fromkeys(row["problems"] for row in summary["accuracy"]):
        rows = [row for row in summary["accuracy"] if row["problems"] == problems]
        console.print(f"\n{heading(rows, summary)}", highlight=False)
        for models in _blocks(summary["models"]):
            console.print(_grid(rows, models))
    if summary["claims"]:
        console.print(f"\n{claims_heading(summary)}", highlight=False)
        console.print(_claims(summary))


def heading(rows: Sequence[Summary], summary: Summary) -> str:
    """What a table of accuracies shows: functions, seeds, problems, answers to each, and the kind of interval."""
    first = rows[0]
    sizes = sorted({row["n_problems"] for row in rows})
    size = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    what = TITLES.get(first["functions"], first["functions"])
    answers = summary["sampling"]["n_samples"]
    each = f", {answers} answers to each" if answers > 1 else ""
    seeds = "mean of " + plural(first["n_seeds"], "seed") if first["n_seeds"] > 1 else "one seed"
    kinds = next((row["interval"] for row in rows if row["interval"]), PROBLEMS)
    return f"{what}: % correct, {seeds} [95 % interval over {kinds}], n = {size}{each}"


def claims_heading(summary: Summary) -> str:
    """What the verdicts on the claims rest on."""
    several = len(summary["seeds"]) > 1
    whose = (
        f"by the 95 % intervals of {plural(len(summary['seeds']), 'seed')}, of two kinds"
        if several
        else ("by the 95 % interval of one seed, over problems")
    )
    return f"the paper's claims, differences in points; verdicts {whose} ({LEGEND})"


def claim_columns(summary: Summary) -> list[tuple[str, str, str, str]]:
    """Kinds of interval that verdicts come from: title, keys of a comparison's low and high, key of the verdict."""
    narrow = ("other problems, these seeds", "problems_low", "problems_high", "verdict_these_seeds")
    if len(summary["seeds"]) == 1:
        return [("other problems, this seed", *narrow[1:])]
    return [("other seeds, other problems", "low", "high", "verdict"), narrow]


def plural(n: int, noun: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def share_cell(row: Mapping[str, Any] | None) -> str:
    """``64 [58–70]``, or ``4.3 [2–9]`` for less than 10 %; – for what was not measured."""
    if row is None or row["accuracy"] is None:
        return "–"
    value, low, high = (100 * row[key] for key in ("accuracy", "low", "high"))
    return f"{value:.{0 if value >= 9.95 else 1}f} [{low:.0f}–{high:.0f}]"


def points(comparison: Summary) -> str:
    """``+41.5``; – for what was not measured; nothing where factors are asked for."""
    if comparison["by_seed"]:
        return ""
    return "–" if comparison["difference"] is None else f"{100 * comparison['difference']:+.1f}"


def verdict_cell(comparison: Summary, low: str, high: str, verdict: str) -> str:
    """``[+38, +45] ✓``, or the seeds one by one, ``✓ ✓ ?``, where each of them is judged alone."""
    if comparison["by_seed"]:
        return " ".join(MARKS[one] for one in comparison["by_seed"])
    if comparison["difference"] is None:
        return MARKS[comparison[verdict]]
    return f"[{round(100 * comparison[low]):+d}, {round(100 * comparison[high]):+d}] {MARKS[comparison[verdict]]}"


def comparison_text(comparison: Summary) -> str:
    """The comparison in words, with each seed's factor where a factor is asked for."""
    factors = [f"×{ratio:.1f}" if ratio is not None else "–" for ratio in comparison["ratios"] or ()]
    return " ".join([comparison["comparison"] + (":" if factors else ""), *factors])


def levels_of(rows: Sequence[Summary]) -> dict[tuple[int, str], dict[str, Summary]]:
    """Rows by level and model, levels in order."""
    found: dict[tuple[int, str], dict[str, Summary]] = {}
    for row in sorted(rows, key=lambda row: (row["level"], row["data_source"])):
        found.setdefault((row["level"], row["data_source"]), {})[row["model"]] = row
    return found


def level_name(level: int, data_source: str) -> str:
    """``L3``, or the data source's name where it holds no level."""
    return f"L{level}" if level else data_source


def _grid(rows: Sequence[Summary], models: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    for model in models:
        table.add_column(model, justify="right", overflow="fold")
    for level, cells in levels_of(rows).items():
        table.add_row(level_name(*level), *(share_cell(cells.get(model)) for model in models))
    return table


def _blocks(models: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many arms side by side as fit: a column is as wide as its name, and no narrower than ``100 [98–100]``."""
    block: list[str] = []
    for model in models:
        if block and 4 + sum(max(12, len(name)) + 1 for name in [*block, model]) > WIDTH:
            yield block
            block = []
        block.append(model)
    yield block


def _claims(summary: Summary) -> Table:
    columns = claim_columns(summary)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), width=WIDTH)
    table.add_column("", ratio=1)
    table.add_column("", justify="right", no_wrap=True)
    for title, *_ in columns:
        table.add_column(title, justify="right", width=18)
    for claim in summary["claims"]:
        verdicts = (f"[{COLOURS[claim[key]]}]{claim[key]}[/]" for *_, key in columns)
        table.add_row(f"[bold]{claim['claim']}[/] {claim['text']}", "", *verdicts)
        for one in claim["comparisons"]:
            cells = (verdict_cell(one, *keys) for _, *keys in columns)
            table.add_row(f"  {comparison_text(one)}", points(one), *map(escape, cells))
        table.add_section()
    return table
