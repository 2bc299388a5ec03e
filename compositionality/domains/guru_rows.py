"""Rows of several domains as they were read, those that cannot be used, and what is printed of both."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from compositionality.console import new_console, new_table
from compositionality.types import Message, Problem

BANDS = (0.2, 0.4, 0.6, 0.8)  # of difficulty; pass rates of 0 and 1, and none, are bands of their own


class GuruRow(NamedTuple):
    """A row that was read; ``info`` is its extra_info."""

    problem: Problem
    prompt: list[Message]  # all turns
    pass_rate: float | None  # None: not known
    info: Mapping[str, Any]
    score: float | None = None  # of its own gold answer; None: it has none, or was not asked for it

    @property
    def domain(self) -> str:
        return self.problem.group

    @property
    def stratum(self) -> tuple[str, float]:
        """Its domain and band of difficulty."""
        if self.pass_rate is None:
            return self.domain, -1.0
        inner = 0 < self.pass_rate < 1
        return self.domain, sum(self.pass_rate >= edge for edge in BANDS) + 1.0 if inner else self.pass_rate * 9

    @property
    def length(self) -> int:
        """Characters of all turns."""
        return sum(len(turn["content"]) for turn in self.prompt)


class Refused(NamedTuple):
    file: str
    row: int
    reason: str
    data_source: str
    score: float | None = None


def print_parts(
    output: Path, parts: Mapping[str, Sequence[GuruRow]], counts: Mapping[str, int], refused: Sequence[Refused]
) -> None:
    """Print how many rows of each domain the files hold, what was left out, and a row of each domain."""
    for name, part in parts.items():
        domains = Counter(row.domain for row in part)
        print(f"{output}/{name}.parquet: {len(part):,} rows ({', '.join(f'{k} {v:,}' for k, v in domains.items())})")
    print(", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items()))
    if refused:
        print(f"{output}/refused.csv says what is wrong with each refused row; the first: {refused[0].reason}")
    _print_first(parts["train"])


def print_sources(rows: Sequence[GuruRow], refused: Sequence[Refused]) -> None:
    """Print what the files hold, by data source.

    Rows, those that cannot be used, the mean score of gold answers in their own judge, repeated prompts, lengths in
    characters; then the first row of each domain, and the first refused one of each source.
    """
    cells: list[tuple[Any, ...]] = [(row.data_source, True, row.score, None, None) for row in refused]
    cells += [(row.problem.data_source, False, row.score, str(row.prompt), row.length) for row in rows]
    frame = pd.DataFrame(cells, columns=["source", "refused", "score", "prompt", "length"])
    frame["repeated"] = frame["prompt"].notna() & frame["prompt"].duplicated()
    figures = {
        "rows": ("refused", "size"),
        "refused": ("refused", "sum"),
        "gold judged": ("score", "count"),
        "mean score": ("score", "mean"),
        "repeated": ("repeated", "sum"),
        "prompt median": ("length", "median"),
        "prompt max": ("length", "max"),
    }
    table = new_table("data source", *figures)
    for source, values in frame.groupby("source").agg(**figures).iterrows():
        table.add_row(str(source), *(f"{value:g}" for value in values))
    new_console().print(table)
    for first in {row.data_source: row for row in reversed(refused)}.values():
        print(f"refused: {first.file}: row {first.row}: {first.reason}")
    _print_first(rows)


def _print_first(rows: Sequence[GuruRow]) -> None:
    for domain, row in {row.domain: row for row in reversed(rows)}.items():
        print(f"\n{domain}, {row.problem.data_source}: {row.prompt[-1]['content'][:300]!r}")
        print(f"its ground truth: {row.problem.ground_truth[:200]!r}")
