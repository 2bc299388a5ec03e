"""What the filter kept and dropped, and why: per level and per function."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from compositionality.console import natural_key, new_console, new_table
from compositionality.rft.rules import FATES, KEPT

TOTAL = "all"


@dataclass
class Report:
    """Counts of fates. A response with two functions counts under both, so functions do not add up to the total."""

    total: Counter[str] = field(default_factory=Counter)
    by_level: dict[str, Counter[str]] = field(default_factory=dict)
    by_function: dict[str, Counter[str]] = field(default_factory=dict)
    prompts: int = 0
    prompts_kept: int = 0

    def add(self, level: str, functions: Iterable[str], fates: Sequence[str]) -> None:
        """Count the fates of the responses to one prompt."""
        counts = Counter(fates)
        self.total.update(counts)
        self.by_level.setdefault(level, Counter()).update(counts)
        for function in functions:
            self.by_function.setdefault(function, Counter()).update(counts)
        self.prompts += 1
        self.prompts_kept += KEPT in counts

    def facts(self) -> dict[str, Any]:
        """The counts as JSON types, for the manifest."""
        return {
            "responses": self.total.total(),
            "prompts": self.prompts,
            "prompts_kept": self.prompts_kept,
            "fates": _ordered(self.total),
            "fates_by_level": {
                level: _ordered(self.by_level[level]) for level in sorted(self.by_level, key=natural_key)
            },
            "fates_by_function": {
                name: _ordered(self.by_function[name]) for name in sorted(self.by_function, key=natural_key)
            },
        }


def print_facts(facts: dict[str, Any], console: Console | None = None) -> None:
    """Print the counts that ``Report.facts`` gave, as two tables."""
    console = console or new_console()
    for title, key in (("level", "fates_by_level"), ("function", "fates_by_function")):
        if facts[key]:
            console.print(_table(title, facts[key], facts["fates"]))
    console.print(
        f"{facts['fates'].get(KEPT, 0):,} of {facts['responses']:,} responses kept, "
        f"from {facts['prompts_kept']:,} of {facts['prompts']:,} prompts",
        highlight=False,
    )


def _table(title: str, groups: dict[str, dict[str, int]], total: dict[str, int]) -> Table:
    shown = [fate for fate in FATES if total.get(fate)]
    table = new_table()
    table.add_column(title, overflow="fold")
    for header in ("responses", *shown):
        table.add_column(header.replace("_", " "), justify="right")
    rows = {**groups, TOTAL: total} if title == "level" else groups
    for name, counts in rows.items():
        table.add_row(name, f"{sum(counts.values()):,}", *(f"{counts.get(fate, 0):,}" for fate in shown))
    return table


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return {fate: counts[fate] for fate in FATES if counts[fate]}
