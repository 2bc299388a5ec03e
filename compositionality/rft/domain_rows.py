"""Rows of several domains as they were read, those that cannot be used, and what is printed of both."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from compositionality.console import new_console, new_table
from compositionality.types import Message, Problem

BANDS = (0.2, 0.4, 0.6, 0.8)
"""Between the bands of difficulty; pass rates of 0 and 1, and rows without one, are bands of their own."""


class GuruRow(NamedTuple):
    """A row that was read: its problem, all turns of its prompt, its pass rate (None: not known), its extra_info, the
    score of its own gold answer (None: it has none, or was not asked for it)."""

    problem: Problem
    prompt: list[Message]
    pass_rate: float | None
    info: Mapping[str, Any]
    score: float | None = None

    @property
    def stratum(self) -> tuple[str, float]:
        """Its domain and band of difficulty."""
        if self.pass_rate is None:
            return self.problem.group, -1.0
        inner = 0 < self.pass_rate < 1
        return self.problem.group, sum(self.pass_rate >= edge for edge in BANDS) + 1.0 if inner else self.pass_rate * 9

    @property
    def length(self) -> int:
        """Characters of all turns."""
        return sum(len(turn["content"]) for turn in self.prompt)


class Refused(NamedTuple):
    """A row that cannot be used, and why."""

    file: str
    row: int
    reason: str
    data_source: str
    score: float | None = None


def print_parts(
    output: Path, parts: Mapping[str, Sequence[GuruRow]], counts: Mapping[str, int], refused: Sequence[Refused]
) -> None:
    """How many rows of each domain the files hold, what was left out, and a row of each domain."""
    for name, part in parts.items():
        domains = Counter(row.problem.group for row in part)
        print(f"{output}/{name}.parquet: {len(part):,} rows ({', '.join(f'{k} {v:,}' for k, v in domains.items())})")
    print(", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items()))
    if refused:
        print(f"{output}/refused.csv says what is wrong with each refused row; the first: {refused[0].reason}")
    _print_first(parts["train"])


def print_sources(rows: Sequence[GuruRow], refused: Sequence[Refused]) -> None:
    """By data source: rows, those that cannot be used, the mean score of gold answers in their own judge, repeated
    prompts, lengths in characters; then the first row of each domain, and the first refused one of each source."""
    cells: list[tuple[Any, ...]] = [(one.data_source, True, one.score, None, None) for one in refused]
    cells += [(row.problem.data_source, False, row.score, str(row.prompt), row.length) for row in rows]
    frame = pd.DataFrame(cells, columns=["source", "refused", "score", "prompt", "length"])
    frame["repeated"] = frame["prompt"].notna() & frame["prompt"].duplicated()
    sums = {"rows": ("refused", "size"), "refused": ("refused", "sum"), "gold judged": ("score", "count")}
    means = {"mean score": ("score", "mean"), "repeated": ("repeated", "sum")}
    lengths = {f"prompt {of}": ("length", of) for of in ("median", "max")}
    table = new_table("data source", *sums, *means, *lengths)
    for source, found in frame.groupby("source").agg(**sums, **means, **lengths).iterrows():
        table.add_row(str(source), *(f"{value:g}" for value in found))
    new_console().print(table)
    for first in {one.data_source: one for one in reversed(refused)}.values():
        print(f"refused: {first.file}: row {first.row}: {first.reason}")
    _print_first(rows)


def _print_first(rows: Sequence[GuruRow]) -> None:
    for domain, row in {one.problem.group: one for one in reversed(rows)}.items():
        print(f"\n{domain}, {row.problem.data_source}: {row.prompt[-1]['content'][:300]!r}")
        print(f"its ground truth: {row.problem.ground_truth[:200]!r}")
