"""Counts per problem: from rollouts to ``by_problem.parquet`` and back; all that accuracy, pairing and seeds need."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compositionality.data.parquet import read_table
from compositionality.data.problems import iterate_problems
from compositionality.errors import UserError
from compositionality.stats.estimate import Counts, Values
from compositionality.tasks.registry import known_task
from compositionality.types import FAILURES, Reason

if TYPE_CHECKING:
    import pandas as pd

REASONS = tuple(reason.value for reason in Reason)
_CORRECT, _ERROR = REASONS.index(Reason.CORRECT), REASONS.index(Reason.ERROR)
UNKNOWN = -1
"""In place of a count of composed responses: the task cannot tell."""
Composes = Callable[[int, str], bool | None]
"""Whether a response to a problem (row number) applies its functions in their order; None: the task cannot tell."""


@dataclass(frozen=True)
class Tally:
    """Counts for P problems: responses by reason (P, R), tokens (P,), judged responses that compose or UNKNOWN (P,)."""

    reasons: Counts
    tokens: Counts
    composed: Counts

    @property
    def correct(self) -> Counts:
        """Correct responses."""
        return self.reasons[:, _CORRECT]

    @property
    def judged(self) -> Counts:
        """Responses with a verdict; a failure of judge or server is none."""
        judged: Counts = self.reasons.sum(axis=1) - self.reasons[:, _ERROR]
        return judged

    def only(self, problems: Counts) -> "Tally":
        """The tally of some of the problems, by row number."""
        return Tally(self.reasons[problems], self.tokens[problems], self.composed[problems])

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


def tally(shards: Iterable[pa.Table], n_problems: int, composes: Composes | None = None) -> Tally:
    """Count the rows of a rollout folder, shard by shard; without ``composes`` no composed responses."""
    reasons = np.zeros((n_problems, len(REASONS)), np.int64)
    tokens = np.zeros(n_problems, np.int64)
    composed = np.full(n_problems, 0 if composes else UNKNOWN)
    for shard in shards:
        problem = shard["problem"].to_numpy()
        reason = pc.index_in(shard["reason"], pa.array(REASONS))
        if reason.null_count or (len(problem) and not 0 <= problem.min() <= problem.max() < n_problems):
            raise UserError("the rollouts name a problem or a verdict that is unknown; collect them again")
        np.add.at(reasons, (problem, reason.to_numpy()), 1)
        np.add.at(tokens, problem, shard["n_tokens"].to_numpy())
        if composes:
            _add_composed(composed, shard.filter(pc.not_equal(shard["reason"], Reason.ERROR)), composes)
    return Tally(reasons, tokens, composed)


def _add_composed(composed: Counts, judged: pa.Table, composes: Composes) -> None:
    for number, text in zip(judged["problem"].to_pylist(), judged["response"].to_pylist(), strict=True):
        found = composes(number, text)
        if composed[number] != UNKNOWN:
            composed[number] = UNKNOWN if found is None else composed[number] + found


def known_composed(counted: "Tally | ProblemCounts") -> tuple[Counts, Counts]:
    """Composed responses, and out of how many: 0 where the task cannot tell."""
    composed = np.full_like(counted.judged, UNKNOWN) if counted.composed is None else counted.composed
    known = composed != UNKNOWN
    return np.where(known, composed, 0), np.where(known, counted.judged, 0)


BY_PROBLEM = "by_problem.parquet"
BY_PROBLEM_SCHEMA = pa.schema(
    [
        ("model", pa.string()),
        ("problems", pa.string()),
        ("problem", pa.int64()),
        ("group", pa.string()),
        ("level", pa.int64()),
        ("data_source", pa.string()),
        ("cluster", pa.string()),  # equal for problems that share a composition (Task.cluster)
        ("judged", pa.int64()),
        ("correct", pa.int64()),
        ("composed", pa.int64()),  # null: the task cannot tell
    ]
)


class Stratum(NamedTuple):
    """Problems that are reported together: those of one group at one level, from one data source."""

    group: str
    level: int
    data_source: str = ""

    def __str__(self) -> str:
        return f"{self.group} L{self.level}" if self.level else self.group


Strata = Sequence[Stratum]
"""The stratum of every problem of a file, in file order."""


@dataclass(frozen=True)
class ProblemCounts:
    """One checkpoint on one problem file of P problems, in file order."""

    strata: Strata  # (P,)
    judged: Counts  # (P,)
    correct: Counts  # (P,)
    classes: Mapping[str, Values] = field(
        default_factory=dict
    )  # of each failure class its responses, (P,); of influence, values
    composed: Counts | None = None  # (P,), UNKNOWN where the task cannot tell; None: not counted
    clusters: Sequence[str] = ()  # (P,): equal for problems that share what makes them hard; empty: each its own

    @property
    def cluster_numbers(self) -> Counts:
        """A number for the cluster of every problem, (P,)."""
        names = self.clusters or range(len(self.strata))
        numbers: Counts = np.unique(np.asarray(names), return_inverse=True)[1]
        return numbers

    def rows(self, stratum: Stratum) -> list[int]:
        """The problems of one stratum, by row number."""
        return [row for row, found in enumerate(self.strata) if found == stratum]


Counted = Mapping[tuple[str, str], ProblemCounts]
"""Counts by (checkpoint, problem file)."""


def strata_of(problems: pa.Table) -> list[Stratum]:
    """The stratum of every row."""
    return list(map(Stratum, *(problems[name].to_pylist() for name in Stratum._fields)))


def clusters_of(problems: pa.Table) -> list[str]:
    """The cluster of every row."""
    return [known_task(problem.data_source).cluster(problem) for problem in iterate_problems(problems)]


def by_problem_table(tallies: Mapping[tuple[str, str], Tally], problems: Mapping[str, pa.Table]) -> pa.Table:
    """Rows from tallies by (checkpoint, problem file) and the problems of each file."""
    return pa.concat_tables(_tables(tallies, problems))


def read_counts(path: Path) -> dict[tuple[str, str], ProblemCounts]:
    """Counts by (checkpoint, problem file). UserError if the file lacks a column or has rows twice."""
    table = read_table(path, BY_PROBLEM_SCHEMA.names, types=BY_PROBLEM_SCHEMA, gaps=["composed"])
    return {
        key: ProblemCounts(
            _strata(part),
            _column(part, "judged"),
            _column(part, "correct"),
            composed=_column(part, "composed"),
            clusters=list(part["cluster"]),
        )
        for key, part in _parts(path, table)
    }


def read_class_counts(path: Path) -> dict[tuple[str, str], ProblemCounts]:
    """The same from a table with ``responses`` and a column of counts for every class in place of ``judged``."""
    counted = [(name, pa.int64()) for name in ("responses", *FAILURES)]
    types = pa.schema([*list(BY_PROBLEM_SCHEMA)[:7], *counted])
    table = read_table(path, types.names, types=types)
    return {
        key: ProblemCounts(
            _strata(part),
            _column(part, "responses"),
            _column(part, "correct"),
            {name: _column(part, name) for name in FAILURES},
            clusters=list(part["cluster"]),
        )
        for key, part in _parts(path, table)
    }


def _parts(path: Path, table: pa.Table) -> Iterator[tuple[tuple[str, str], "pd.DataFrame"]]:
    sizes: dict[str, int] = {}
    for (model, problems), part in table.to_pandas().groupby(["model", "problems"], sort=False):
        size = sizes.setdefault(problems, len(part))
        if len(part) != size or list(part["problem"]) != list(range(size)):
            raise UserError(f"{path}: {model} on {problems}: rows missing or twice; make it again with --force")
        yield (model, problems), part


def _strata(part: "pd.DataFrame") -> list[Stratum]:
    return list(map(Stratum, part["group"], map(int, part["level"]), part["data_source"]))


def _column(part: "pd.DataFrame", name: str) -> Counts:
    counts: Counts = part[name].fillna(UNKNOWN).to_numpy(np.int64)
    return counts


def _tables(tallies: Mapping[tuple[str, str], Tally], problems: Mapping[str, pa.Table]) -> Iterator[pa.Table]:
    rows = {name: (strata_of(table), clusters_of(table)) for name, table in problems.items()}
    for (model, name), counts in tallies.items():
        n = len(counts.tokens)
        strata, clusters = rows[name]
        labels = zip(*strata, strict=True) if n else ((), (), ())
        composed = pa.array(counts.composed, mask=counts.composed == UNKNOWN)
        columns = [[model] * n, [name] * n, range(n), *labels, clusters, counts.judged, counts.correct, composed]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, BY_PROBLEM_SCHEMA, strict=True)]
        yield pa.Table.from_arrays(arrays, schema=BY_PROBLEM_SCHEMA)
