"""Counts for every problem, kept beside the tables: what pairing by problem and pooling over seeds need."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.evaluate.tally import Tally
from compositionality.stats.intervals import Counts
from compositionality.types import FAILURES

if TYPE_CHECKING:
    import pandas as pd

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
    classes: Mapping[str, Counts] = field(default_factory=dict)  # answers of each class, (P,), where they were classed


def table_of(tallies: Mapping[tuple[str, str], Tally], levels: Mapping[str, Sequence[str]]) -> pa.Table:
    """Rows from tallies by (checkpoint, problem file) and the data sources of each problem file."""
    return pa.concat_tables(_tables(tallies, levels))


def read_answers(path: Path) -> dict[tuple[str, str], Answers]:
    """Counts by (checkpoint, problem file). UserError if the file lacks a column or has rows twice."""
    return {
        key: Answers(tuple(part["data_source"]), _column(part, "judged"), _column(part, "correct"))
        for key, part in _parts(path, read_table(path, SCHEMA.names))
    }


def read_classes(path: Path) -> dict[tuple[str, str], Answers]:
    """The same from a table with ``responses`` and a column of counts for every class in place of ``judged``."""
    table = read_table(path, [*SCHEMA.names[:4], "responses", *FAILURES])
    return {
        key: Answers(
            tuple(part["data_source"]),
            _column(part, "responses"),
            _column(part, "correct"),
            {name: _column(part, name) for name in FAILURES},
        )
        for key, part in _parts(path, table)
    }


def _parts(path: Path, table: pa.Table) -> Iterator[tuple[tuple[str, str], "pd.DataFrame"]]:
    for (model, problems), part in table.to_pandas().groupby(["model", "problems"], sort=False):
        if list(part["problem"]) != list(range(len(part))):
            raise UserError(f"{path}: {model} on {problems}: rows missing or twice; make it again with --force")
        yield (model, problems), part


def _column(part: "pd.DataFrame", name: str) -> Counts:
    counts: Counts = part[name].to_numpy(np.int64)
    return counts


def _tables(tallies: Mapping[tuple[str, str], Tally], levels: Mapping[str, Sequence[str]]) -> Iterator[pa.Table]:
    for (model, name), counts in tallies.items():
        n = len(counts.tokens)
        columns = [[model] * n, [name] * n, range(n), list(levels[name]), counts.judged, counts.correct]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
        yield pa.Table.from_arrays(arrays, schema=SCHEMA)
