"""Counts per problem: from rollouts to ``by_problem.parquet`` and back; all that accuracy, pairing and seeds need."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.stats.intervals import Counts
from compositionality.types import FAILURES, Reason

if TYPE_CHECKING:
    import pandas as pd

REASONS = tuple(reason.value for reason in Reason)
_CORRECT, _ERROR = REASONS.index(Reason.CORRECT), REASONS.index(Reason.ERROR)


@dataclass(frozen=True)
class Tally:
    """Counts for P problems: responses by reason (P, R) and tokens (P,)."""

    reasons: Counts
    tokens: Counts

    @property
    def correct(self) -> Counts:
        """Correct responses."""
        return self.reasons[:, _CORRECT]

    @property
    def judged(self) -> Counts:
        """Responses with a verdict; a verifier's failure is none."""
        judged: Counts = self.reasons.sum(axis=1) - self.reasons[:, _ERROR]
        return judged

    def only(self, problems: Counts) -> "Tally":
        """The tally of some of the problems, by row number."""
        return Tally(self.reasons[problems], self.tokens[problems])

    @property
    def responses(self) -> int:
        """All responses."""
        return int(self.reasons.sum())

    def shares(self) -> dict[str, float]:
        """Share of every reason among all responses."""
        return {
            reason: float(count) / max(self.responses, 1)
            for reason, count in zip(REASONS, self.reasons.sum(axis=0), strict=True)
        }

    def mean_tokens(self) -> float:
        """Mean length of a response in tokens."""
        return float(self.tokens.sum()) / max(self.responses, 1)


def tally(shards: Iterable[pa.Table], n_problems: int) -> Tally:
    """Count the rows of a rollout folder, shard by shard."""
    reasons = np.zeros((n_problems, len(REASONS)), np.int64)
    tokens = np.zeros(n_problems, np.int64)
    for shard in shards:
        problem = shard["problem"].to_numpy()
        reason = pc.index_in(shard["reason"], pa.array(REASONS))
        if reason.null_count or (len(problem) and not 0 <= problem.min() <= problem.max() < n_problems):
            raise UserError("the rollouts name a problem or a verdict that is unknown; collect them again")
        np.add.at(reasons, (problem, reason.to_numpy()), 1)
        np.add.at(tokens, problem, shard["n_tokens"].to_numpy())
    return Tally(reasons, tokens)


BY_PROBLEM = "by_problem.parquet"
BY_PROBLEM_SCHEMA = pa.schema(
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


def by_problem_table(tallies: Mapping[tuple[str, str], Tally], levels: Mapping[str, Sequence[str]]) -> pa.Table:
    """Rows from tallies by (checkpoint, problem file) and the data sources of each problem file."""
    return pa.concat_tables(_tables(tallies, levels))


def read_answers(path: Path) -> dict[tuple[str, str], Answers]:
    """Counts by (checkpoint, problem file). UserError if the file lacks a column or has rows twice."""
    return {
        key: Answers(tuple(part["data_source"]), _column(part, "judged"), _column(part, "correct"))
        for key, part in _parts(path, read_table(path, BY_PROBLEM_SCHEMA.names))
    }


def read_classes(path: Path) -> dict[tuple[str, str], Answers]:
    """The same from a table with ``responses`` and a column of counts for every class in place of ``judged``."""
    table = read_table(path, [*BY_PROBLEM_SCHEMA.names[:4], "responses", *FAILURES])
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
        arrays = [pa.array(values, field.type) for values, field in zip(columns, BY_PROBLEM_SCHEMA, strict=True)]
        yield pa.Table.from_arrays(arrays, schema=BY_PROBLEM_SCHEMA)
