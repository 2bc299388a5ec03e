"""``labels.parquet``: a row for every response with its class, its first fault, and the functions applied."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.errors import UserError
from compositionality.evaluate.failures.sources import Problems, Source
from compositionality.evaluate.table import REASONS
from compositionality.rollout.store import read_rollouts
from compositionality.tasks.registry import task_of
from compositionality.types import Completion, Diagnosis, Problem, Reason, Verdict

LABELS_SCHEMA = pa.schema(
    [
        ("arm", pa.string()),
        ("file", pa.string()),
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
    opened = {source.file: Problems(source.path) for source in sources}
    n_rows = 0
    with pq.ParquetWriter(path, LABELS_SCHEMA, compression="zstd") as writer:
        for source in sources:
            for shard in read_rollouts(source.rollouts):
                rows = list(_label_shard(source, opened[source.file], shard, levels))
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
        if not 0 <= problem < len(problems):
            raise UserError(f"{problems.path}: has no row {problem}, which the rollouts answer; collect them again")
        if reason not in REASONS:
            raise UserError(f"{problems.path}: row {problem}: {reason!r} is no verdict; collect its rollouts again")
        yield problem, sample, Completion(text, n_tokens, finish_reason), Verdict(score, Reason(reason), answer)


def _label_shard(source: Source, problems: Problems, shard: pa.Table, levels: Collection[int]) -> Iterator[Row]:
    problem: Problem | None = None
    at, cluster = -1, ""
    for number, sample, completion, verdict in responses_of(shard, problems):
        if levels and problems.levels[number] not in levels:
            continue
        if number != at or problem is None:
            at, problem = number, problems.problem(number)
            cluster = task_of(problem.data_source).cluster(problem)
        labels = {"arm": source.model, "file": source.file, "problem": number, "sample": sample}
        labels |= {"group": problem.group, "level": problem.level, "data_source": problem.data_source}
        try:
            found = task_of(problem.data_source).diagnose(problem, completion, verdict)
        except UserError as error:
            raise UserError(f"{problems.path}: row {number}: {error}") from error
        yield {**labels, "cluster": cluster, **_columns(found)}


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
