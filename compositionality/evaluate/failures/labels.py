"""A row for every response (its class, its first fault, the functions applied), and counts of these per problem."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.errors import UserError
from compositionality.evaluate.counts import REASONS, Stratum
from compositionality.evaluate.failures.sources import Problems, Source
from compositionality.rollout.store import read_rollouts
from compositionality.stats.estimate import Counts
from compositionality.tasks.registry import task_of
from compositionality.types import FAILURES, Completion, Diagnosis, Problem, Reason, Verdict

LABELS_SCHEMA = pa.schema(
    [
        ("model", pa.string()),
        ("problems", pa.string()),
        ("problem", pa.int64()),
        ("sample", pa.int32()),
        ("group", pa.string()),
        ("level", pa.int64()),
        ("data_source", pa.string()),
        ("cluster", pa.string()),  # equal for problems that share a composition (Task.cluster)
        ("class", pa.string()),
        ("step", pa.int32()),  # where the first fault is, from 1, innermost first
        ("function", pa.string()),
        ("fault", pa.string()),
        ("outer", pa.string()),  # of a problem of one or two functions: the last one applied …
        ("inner", pa.string()),  # … and the first, if there are two
        ("composed", pa.bool_()),  # the functions are the problem's, in order, whatever the strings
        ("applied", pa.list_(pa.string())),  # the functions of the steps that the response states …
        ("wrong", pa.list_(pa.bool_())),  # … and which of these have another result than the function gives
    ]
)
Row = dict[str, Any]


def write_labels(sources: Sequence[Source], levels: Collection[int], path: Path) -> int:
    """Classify every response to problems of ``levels`` (none: all), a shard at a time; how many there are."""
    problems = {source.problems: source.path for source in sources}
    opened = {name: Problems(path) for name, path in problems.items()}
    n_rows = 0
    with pq.ParquetWriter(path, LABELS_SCHEMA, compression="zstd") as writer:
        for source in sources:
            for shard in read_rollouts(source.rollouts):
                rows = list(_label_shard(source, opened[source.problems], shard, levels))
                if rows:
                    writer.write_table(pa.Table.from_pylist(rows, schema=LABELS_SCHEMA))
                n_rows += len(rows)
    return n_rows


def responses_of(shard: pa.Table, problems: Problems) -> Iterator[tuple[int, int, Completion, Verdict]]:
    """(problem, sample, completion, verdict). UserError if a row names a problem that the file has not."""
    columns = ("problem", "sample", "response", "n_tokens", "finish_reason", "score", "reason", "answer")
    for problem, sample, text, n_tokens, finish_reason, score, reason, answer in zip(
        *(shard[name].to_pylist() for name in columns), strict=True
    ):
        if not 0 <= problem < len(problems.strata):
            raise UserError(f"{problems.path}: has no row {problem}, which the rollouts answer; collect them again")
        if reason not in REASONS:
            raise UserError(f"{problems.path}: row {problem}: {reason!r} is no verdict; collect its rollouts again")
        yield problem, sample, Completion(text, n_tokens, finish_reason), Verdict(score, Reason(reason), answer)


def _label_shard(source: Source, problems: Problems, shard: pa.Table, levels: Collection[int]) -> Iterator[Row]:
    problem: Problem | None = None
    at, cluster = -1, ""
    for number, sample, completion, verdict in responses_of(shard, problems):
        stratum = problems.strata[number]
        if levels and stratum.level not in levels:
            continue
        if number != at or problem is None:
            at, problem = number, problems.problem(number)
            cluster = task_of(problem.data_source).cluster(problem)
        labels = {"model": source.model, "problems": source.problems, "problem": number, "sample": sample}
        try:
            found = task_of(problem.data_source).diagnose(problem, completion, verdict)
        except UserError as error:
            raise UserError(f"{problems.path}: row {number}: {error}") from error
        yield {**labels, **stratum._asdict(), "cluster": cluster, **_columns(found)}


def _columns(found: Diagnosis) -> Row:
    return {
        "class": found.failure.value,
        "step": found.step,
        "function": found.skill,
        "fault": found.fault,
        "outer": found.expected[-1] if 1 <= len(found.expected) <= 2 else None,
        "inner": found.expected[0] if len(found.expected) == 2 else None,
        "composed": found.composed,
        "applied": [name for name, _ in found.applied],
        "wrong": [wrong for _, wrong in found.applied],
    }


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
class LabelCounts:
    """One model on one problem file."""

    strata: dict[int, Stratum] = field(default_factory=dict)  # of every problem with a response
    clusters: dict[int, str] = field(default_factory=dict)  # of every problem with a response
    pairs: dict[tuple[str, str | None], list[int]] = field(default_factory=dict)  # (outer, inner or None) → problems
    classes: Tallies = field(default_factory=Tallies)
    faults: Tallies = field(default_factory=Tallies)  # by (class, fault)
    composed: Tallies = field(default_factory=Tallies)  # one key: True
    reached: Tallies = field(default_factory=Tallies)  # by function
    wrong: Tallies = field(default_factory=Tallies)

    def add(self, row: dict[str, Any]) -> None:
        """Count one response."""
        problem = row["problem"]
        if problem not in self.strata:
            self.strata[problem] = Stratum(*(row[name] for name in Stratum._fields))
            self.clusters[problem] = row["cluster"]
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

    def cluster_numbers(self, problems: list[int]) -> Counts:
        """A number for the cluster of each of these problems, (P,)."""
        numbers: Counts = np.unique([self.clusters[problem] for problem in problems], return_inverse=True)[1]
        return numbers

    def responses(self, problems: list[int]) -> Counts:
        """How many there are to each problem, (P,)."""
        total: Counts = np.sum([self.classes.over(name, problems) for name in FAILURES], axis=0)
        return total


def count_labels(path: Path) -> dict[tuple[str, str], LabelCounts]:
    """Counts by (model, problem file), in the order in which they come."""
    found: dict[tuple[str, str], LabelCounts] = {}
    with pq.ParquetFile(path) as labels:
        for batch in labels.iter_batches(8192, columns=LABELS_SCHEMA.names):
            for row in batch.to_pylist():
                found.setdefault((row["model"], row["problems"]), LabelCounts()).add(row)
    return found


def by_problem(counted: dict[tuple[str, str], LabelCounts]) -> pa.Table:
    """A row per model, problem file and problem; a column of counts per class."""
    return pa.concat_tables(_table(*key, counts) for key, counts in counted.items())


def _table(model: str, name: str, counts: LabelCounts) -> pa.Table:
    problems = sorted(counts.strata)
    return pa.table(
        {
            "model": pa.array([model] * len(problems), pa.string()),
            "problems": pa.array([name] * len(problems), pa.string()),
            "problem": pa.array(problems, pa.int64()),
            **_strata([counts.strata[problem] for problem in problems]),
            "cluster": pa.array([counts.clusters[problem] for problem in problems], pa.string()),
            "responses": counts.responses(problems),
            **{kind: counts.classes.over(kind, problems) for kind in FAILURES},
        }
    )


def _strata(strata: Sequence[Stratum]) -> dict[str, pa.Array]:
    """The columns group, level and data_source."""
    types = (pa.string(), pa.int64(), pa.string())
    columns = zip(*strata, strict=True) if strata else ((), (), ())
    return {name: pa.array(values, kind) for name, values, kind in zip(Stratum._fields, columns, types, strict=True)}
