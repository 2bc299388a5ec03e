"""``results.parquet``: a row per model and problem. Everything that is measured is a column, or a function of the rows.

One file per evaluation of one replicate (a seed, or a seed with a division of the functions); ``read_results`` puts
those of a study together and refuses what cannot be compared.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.data.problems import iterate_problems
from compositionality.errors import UserError
from compositionality.tasks.registry import known_task
from compositionality.types import CHAIN, FAILURES, Reason

RESULTS = "results.parquet"
REASONS = tuple(reason.value for reason in Reason)
REASON, FAILURE = "reason_", "failure_"
"""What the names of columns of counts begin with: ``reason_wrong``, ``failure_format``."""
KEYS = ("arm", "file", "problem", "group", "level", "data_source", "cluster")
SCHEMA = pa.schema(
    [
        ("arm", pa.string()),
        ("file", pa.string()),  # name of the problem file
        ("problem", pa.int64()),  # row number in it
        ("group", pa.string()),
        ("level", pa.int64()),
        ("data_source", pa.string()),
        ("cluster", pa.string()),  # equal for problems that share a composition (Task.cluster)
        ("skills", pa.list_(pa.string())),  # what the problem asks for (Task.skills)
        ("n", pa.int64()),  # completions
        ("judged", pa.int64()),  # those with a verdict: a failure of judge or server is none
        ("right", pa.int64()),
        # Of the judged ones; null where the task cannot tell of any.
        *((name, pa.int64()) for name in CHAIN),
        ("chains_read", pa.int64()),  # of how many it can
        ("canonical", pa.int64()),  # right answers that are the gold solution, letter by letter
        ("tokens", pa.int64()),
        *((REASON + reason, pa.int64()) for reason in REASONS),
        *((FAILURE + failure, pa.int64()) for failure in FAILURES),  # null: not classified
        # Null: not measured.
        ("gold_log_prob", pa.float64()),  # of the gold solution and its EOS, in nats
        ("gold_log_prob_by_step_role", pa.list_(pa.int16())),  # steps × ROLES, in hundredths of a nat
        ("gold_rank_by_step_role", pa.list_(pa.int32())),  # of the least likely token, 1: the likeliest; 0: no token
        ("influence", pa.float64()),  # of a step of rate 1 on the mean reward
        ("entropy", pa.float64()),  # of the policy, nats a token
    ]
)
ADDED = ("chains_read", "canonical", "gold_rank_by_step_role")
"""Columns that tables of earlier versions lack; read as null."""


def problem_sets(problems: pa.Table) -> pd.DataFrame:
    """Return where each problem of a file belongs, (P,): what the file says, without asking the task."""
    names = ("group", "level", "data_source")
    return pd.DataFrame({"problem": range(problems.num_rows)} | {name: problems[name].to_pylist() for name in names})


def problem_columns(problems: pa.Table) -> pd.DataFrame:
    """Return what the table says of each problem of a file, (P,)."""
    described = [(known_task(problem.data_source), problem) for problem in iterate_problems(problems)]
    return problem_sets(problems).assign(
        cluster=[task.cluster(problem) for task, problem in described],
        skills=[list(task.skills(problem)) for task, problem in described],
    )


def count(samples: pd.DataFrame, n_problems: int) -> pd.DataFrame:
    """Count the samples of each of P problems; columns of ``SCHEMA``.

    ``samples``: problem (0 … P − 1), reason, n_tokens and, where texts were read, ``canonical`` and ``CHAIN`` (1, 0,
    NaN: the task cannot tell).
    """
    problem, reason = samples["problem"].to_numpy(), pd.Categorical(samples["reason"], REASONS).codes
    if len(samples) and (reason.min() < 0 or not 0 <= problem.min() <= problem.max() < n_problems):
        raise UserError("the rollouts name a problem or a verdict that is unknown; collect them again")
    reasons = np.zeros((n_problems, len(REASONS)), np.int64)
    np.add.at(reasons, (problem, reason), 1)
    counts = pd.DataFrame(reasons, columns=[REASON + reason for reason in REASONS])
    n, failed = counts.sum(axis=1), counts[REASON + Reason.ERROR]
    counts = counts.assign(n=n, judged=n - failed, right=counts[REASON + Reason.CORRECT])
    columns = {"tokens": samples["n_tokens"]}
    if CHAIN[0] in samples:
        read = samples[CHAIN[0]].notna()
        columns |= {name: samples[name].fillna(0.0) for name in (*CHAIN, "canonical")} | {"chains_read": read}
    for name, values in columns.items():
        counts[name] = np.bincount(problem, values.to_numpy(float), n_problems).astype(np.int64)
    if "chains_read" in counts:
        unread = (counts["chains_read"] == 0) & (counts["judged"] > 0)
        counts = counts.astype(dict.fromkeys(CHAIN, float))
        counts.loc[unread, [*CHAIN]] = np.nan
    return counts


def write(rows: pd.DataFrame, path: Path) -> None:
    """Write rows that have some of the columns; the others are null."""
    rows = rows.reindex(columns=SCHEMA.names)
    arrays = [
        pa.nulls(len(rows), field.type)
        if rows[field.name].isna().all()
        else pa.array(rows[field.name], field.type, from_pandas=True)
        for field in SCHEMA
    ]
    pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), path, compression="zstd")


def read(path: Path) -> pd.DataFrame:
    """Read a table without its column ``skills``. UserError for another schema, or rows twice or missing."""
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: not a table of results; make it again with --force") from error
    known = [field for field in SCHEMA if field.name not in ADDED or field.name in schema.names]
    if not schema.equals(pa.schema(known)):
        raise UserError(f"{path}: has other columns than this version writes; make it again with --force")
    columns = [name for name in SCHEMA.names if name != "skills"]
    rows: pd.DataFrame = pq.read_table(path, schema=SCHEMA, columns=columns).to_pandas()
    problems = rows.groupby(["file", "arm"], sort=False)["problem"]
    sizes = problems.size()
    whole = problems.agg(lambda numbers: numbers.is_monotonic_increasing and numbers.is_unique)
    whole &= sizes == sizes.groupby("file").transform("first")
    if not whole.all():
        file, arm = whole.idxmin()
        raise UserError(f"{path}: {arm} on {file}: rows missing or twice; make it again with --force")
    return rows


def joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put tables with some of the columns together."""
    known = [table.reindex(columns=SCHEMA.names) for table in tables]
    return pd.concat(known, ignore_index=True) if known else pd.DataFrame(columns=SCHEMA.names)
