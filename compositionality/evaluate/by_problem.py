"""Counts for every problem, kept beside the tables: what pairing by problem and pooling over seeds need."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from compositionality.data.intervals import Counts
from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.evaluate.tally import Tally

FILE = "by_problem.parquet"
SCHEMA = pa.schema(
    [
        ("model", pa.string()),
        ("problems", pa.string()),
        ("problem", pa.int64()),
        ("data_source", pa.string()),
        ("judged", pa.int64()),
        ("correct", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Answers:
    """One checkpoint on one problem file of P problems, in file order."""

    levels: tuple[str, ...]  # data sources, (P,)
    judged: Counts  # (P,)
    correct: Counts  # (P,)


def table_of(tallies: Mapping[tuple[str, str], Tally], levels: Mapping[str, Sequence[str]]) -> pa.Table:
    """Rows from tallies by (checkpoint, problem file) and the data sources of each problem file."""
    return pa.concat_tables(_tables(tallies, levels))


def read_answers(path: Path) -> dict[tuple[str, str], Answers]:
    """Counts by (checkpoint, problem file). UserError if the file lacks a column or has rows twice."""
    found = {}
    rows = read_table(path, SCHEMA.names).to_pandas()
    for (model, problems), part in rows.groupby(["model", "problems"], sort=False):
        if list(part["problem"]) != list(range(len(part))):
            raise UserError(f"{path}: {model} on {problems}: rows missing or twice; run evaluate with --force")
        found[model, problems] = Answers(
            tuple(part["data_source"]), part["judged"].to_numpy(np.int64), part["correct"].to_numpy(np.int64)
        )
    return found


def _tables(tallies: Mapping[tuple[str, str], Tally], levels: Mapping[str, Sequence[str]]) -> Iterator[pa.Table]:
    for (model, name), counts in tallies.items():
        n = len(counts.tokens)
        columns = [[model] * n, [name] * n, range(n), list(levels[name]), counts.judged, counts.correct]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
        yield pa.Table.from_arrays(arrays, schema=SCHEMA)
