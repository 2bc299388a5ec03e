"""One row for every response: its class, where it went wrong, and which functions it applied how well."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.errors import UserError
from compositionality.evaluate.failures.sources import Problems, Source
from compositionality.rollout.reading import read_rollouts
from compositionality.tasks.string.diagnosis.classify import Response, applications, classify, read_trace
from compositionality.tasks.string.diagnosis.program import Program

FILE = "labels.parquet"
SCHEMA = pa.schema(
    [
        ("model", pa.string()),
        ("problems", pa.string()),
        ("problem", pa.int64()),
        ("sample", pa.int32()),
        ("data_source", pa.string()),
        ("class", pa.string()),
        ("step", pa.int32()),  # where the first fault is, from 1, innermost first
        ("function", pa.string()),
        ("fault", pa.string()),
        ("outer", pa.string()),  # of a problem of one or two functions: the last one applied …
        ("inner", pa.string()),  # … and the first, if there are two
        ("composed", pa.bool_()),  # the functions are those asked for, in order, whatever the strings
        ("applied", pa.list_(pa.string())),  # the functions of the steps that the response states …
        ("wrong", pa.list_(pa.bool_())),  # … and which of these have another result than the function gives
    ]
)
Row = dict[str, Any]


def write_labels(sources: Sequence[Source], levels: Collection[int], path: Path) -> int:
    """Classify every response to problems of ``levels`` (none: all), a shard at a time; how many there are."""
    problems = {source.problems: source.path for source in sources}
    opened = {name: Problems(name, path) for name, path in problems.items()}
    n_rows = 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for source in sources:
            for shard in read_rollouts(source.rollouts):
                rows = list(_label_shard(source, opened[source.problems], shard, levels))
                if rows:
                    writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))
                n_rows += len(rows)
    return n_rows


def responses_of(shard: pa.Table, problems: Problems) -> Iterator[tuple[int, int, Response]]:
    """Triples (problem, sample, response). UserError if a row names a problem that the file has not."""
    columns = ("problem", "sample", "response", "reason", "finish_reason", "answer")
    for problem, sample, *rest in zip(*(shard[name].to_pylist() for name in columns), strict=True):
        if not 0 <= problem < len(problems.groups):
            raise UserError(f"{problems.path}: has no row {problem}, which the rollouts answer; collect them again")
        yield problem, sample, Response(*rest)


def _label_shard(source: Source, problems: Problems, shard: pa.Table, levels: Collection[int]) -> Iterator[Row]:
    at, program = -1, None
    for problem, sample, response in responses_of(shard, problems):
        group = problems.groups[problem]
        if levels and group.level not in levels:
            continue
        if problem != at or program is None:
            at, program = problem, problems.program(problem)
        labels = {"model": source.model, "problems": source.problems, "problem": problem, "sample": sample}
        yield {**labels, "data_source": group.data_source, **_findings(program, response)}


def _findings(program: Program, response: Response) -> Row:
    trace = read_trace(program, response.text)
    found, applied = classify(program, response, trace), applications(program, trace)
    names = [step.node.operator for step in program.steps] if len(program.steps) == len(program.named) else []
    return {
        "class": found.failure.value,
        "step": found.step,
        "function": found.function,
        "fault": found.fault,
        "outer": names[-1] if 1 <= len(names) <= 2 else None,
        "inner": names[0] if len(names) == 2 else None,
        "composed": tuple(stated.name for stated in trace.steps) == program.names,
        "applied": [name for name, _ in applied],
        "wrong": [wrong for _, wrong in applied],
    }
