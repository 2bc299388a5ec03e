"""Labels boiled down to counts per problem: all that shares and their intervals need. Read row group by row group."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.evaluate.failures.labels import SCHEMA
from compositionality.stats.intervals import Counts
from compositionality.types import FAILURES

FILE = "by_problem.parquet"
Key = Any


class Tallies:
    """Whole numbers by key and problem; a key is whatever is counted."""

    def __init__(self) -> None:
        self._counts: dict[Key, dict[int, int]] = {}

    def add(self, key: Key, problem: int, count: int = 1) -> None:
        """Count."""
        found = self._counts.setdefault(key, {})
        found[problem] = found.get(problem, 0) + count

    def over(self, key: Key, problems: list[int]) -> Counts:
        """The counts of a key over some problems, (P,)."""
        found = self._counts.get(key, {})
        return np.array([found.get(problem, 0) for problem in problems], np.int64)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._counts)


@dataclass
class Counted:
    """One model on one problem file."""

    data_sources: dict[int, str] = field(default_factory=dict)  # of every problem with a response
    pairs: dict[tuple[str, str | None], list[int]] = field(default_factory=dict)  # (outer, inner or None) → problems
    classes: Tallies = field(default_factory=Tallies)
    faults: Tallies = field(default_factory=Tallies)  # by (class, fault)
    composed: Tallies = field(default_factory=Tallies)  # one key: True
    reached: Tallies = field(default_factory=Tallies)  # by function
    wrong: Tallies = field(default_factory=Tallies)

    def add(self, row: dict[str, Any]) -> None:
        """Count one response."""
        problem = row["problem"]
        if problem not in self.data_sources:
            self.data_sources[problem] = row["data_source"]
            if row["outer"] is not None:
                self.pairs.setdefault((row["outer"], row["inner"]), []).append(problem)
        self.classes.add(row["class"], problem)
        if row["fault"] is not None:
            self.faults.add((row["class"], row["fault"]), problem)
        if row["composed"]:
            self.composed.add(True, problem)
        for function, wrong in zip(row["applied"], row["wrong"], strict=True):
            self.reached.add(function, problem)
            if wrong:
                self.wrong.add(function, problem)

    def responses(self, problems: list[int]) -> Counts:
        """How many there are to each problem, (P,)."""
        total: Counts = np.sum([self.classes.over(name, problems) for name in FAILURES], axis=0)
        return total


def count_labels(path: Path) -> dict[tuple[str, str], Counted]:
    """Counts by (model, problem file), in the order in which they come."""
    found: dict[tuple[str, str], Counted] = {}
    with pq.ParquetFile(path) as labels:
        for batch in labels.iter_batches(8192, columns=SCHEMA.names):
            for row in batch.to_pylist():
                found.setdefault((row["model"], row["problems"]), Counted()).add(row)
    return found


def by_problem(counted: dict[tuple[str, str], Counted]) -> pa.Table:
    """A row per model, problem file and problem; a column of counts per class."""
    return pa.concat_tables(_table(*key, counts) for key, counts in counted.items())


def _table(model: str, name: str, counts: Counted) -> pa.Table:
    problems = sorted(counts.data_sources)
    return pa.table(
        {
            "model": pa.array([model] * len(problems), pa.string()),
            "problems": pa.array([name] * len(problems), pa.string()),
            "problem": pa.array(problems, pa.int64()),
            "data_source": pa.array([counts.data_sources[problem] for problem in problems], pa.string()),
            "responses": counts.responses(problems),
            **{kind: counts.classes.over(kind, problems) for kind in FAILURES},
        }
    )
