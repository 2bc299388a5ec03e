"""Accuracy of one checkpoint on one problem file, by level and by function, as plain rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from compositionality.console import natural_key
from compositionality.data.problems import iterate_problems
from compositionality.evaluate.counts import REASONS, Tally
from compositionality.stats.intervals import Counts, Interval, paired_difference, share
from compositionality.tasks.registry import task_of

ALL, LEVEL, FUNCTION = "all", "level", "function"
COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("model", pa.string()),
    ("problems", pa.string()),
    ("kind", pa.string()),
    ("group", pa.string()),
    ("accuracy", pa.float64()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("difference", pa.float64()),
    ("difference_low", pa.float64()),
    ("difference_high", pa.float64()),
    ("n_problems", pa.int64()),
    ("n_responses", pa.int64()),
    ("n_judged", pa.int64()),
    ("n_correct", pa.int64()),
    ("n_samples", pa.int64()),
    ("temperature", pa.float64()),
    ("seed", pa.int64()),
    ("mean_tokens", pa.float64()),
    *((f"share_{reason}", pa.float64()) for reason in REASONS),
)
SCHEMA = pa.schema(COLUMNS)
Row = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Problems (row numbers) that are reported together."""

    kind: str
    name: str
    problems: Counts


def groups_of(problems: pa.Table) -> list[Group]:
    """All problems, those of each level (``data_source``), those with each function."""
    members: dict[tuple[str, str], list[int]] = {}
    for row, level in enumerate(problems["data_source"].to_pylist()):
        members.setdefault((LEVEL, level), []).append(row)
    for row, problem in enumerate(iterate_problems(problems)):
        for function in task_of(problem.data_source).skills(problem):
            members.setdefault((FUNCTION, function), []).append(row)
    named = [Group(kind, name, np.array(rows)) for (kind, name), rows in members.items()]
    ordered = sorted(named, key=lambda group: ((LEVEL, FUNCTION).index(group.kind), natural_key(group.name)))
    return [Group(ALL, ALL, np.arange(problems.num_rows)), *ordered]


def rows_of(tally: Tally, base: Tally | None, groups: Sequence[Group], labels: Row) -> Iterator[Row]:
    """One row per group; ``base`` is the tally that differences are taken from (None: no difference)."""
    for group in groups:
        mine = tally.only(group.problems)
        theirs = None if base is None else base.only(group.problems)
        yield {**labels, "kind": group.kind, "group": group.name, **_figures(mine), **_difference(mine, theirs)}


def _figures(tally: Tally) -> Row:
    return {
        **_columns("accuracy", "low", "high", share(tally.correct, tally.judged)),
        "n_problems": len(tally.tokens),
        "n_responses": tally.responses,
        "n_judged": int(tally.judged.sum()),
        "n_correct": int(tally.correct.sum()),
        "mean_tokens": tally.mean_tokens(),
        **{f"share_{reason}": value for reason, value in tally.shares().items()},
    }


def _difference(mine: Tally, base: Tally | None) -> Row:
    interval = None if base is None else paired_difference(mine.correct, mine.judged, base.correct, base.judged)
    return _columns("difference", "difference_low", "difference_high", interval)


def _columns(value: str, low: str, high: str, interval: Interval | None) -> Row:
    if interval is None:
        return dict.fromkeys((value, low, high))
    return {value: interval.value, low: interval.low, high: interval.high}
