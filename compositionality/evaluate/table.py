"""``results.parquet``: a row per model and problem. Every measure is a column, or a function of the rows.

One file per evaluation of one replicate (a seed, or a seed with a division of the functions); ``read_results`` combines
the files of a study and refuses incomparable ones.

A measure is a name and a function of these rows. It returns two arrays (P,): values and weights; the figure of all
problems is Σ values / Σ weights. To add a measure, add an entry to ``MEASURES``, and to ``CLAIMED`` for claims; if it
counts something new, also a column (in ``SCHEMA``, counted in ``collect.py``; in ``ADDED``, so that older tables can be
read). pass@k is computed from its name: ``pass@8``, ``pass@N`` (all samples), ``pass@N − pass@1``; ``pass^8``: all of 8
samples are right. From exact probabilities (``gold.py``): ``gold_prob``, ``gold_pass@1000000``, ``gold_hand_over``, and
against a base ``beyond@1e-6``, ``new@1e-6``, ``support_kept``, ``support_gained``, ``support_lost``.
"""
# ruff: noqa: N806

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.data.problems import iterate_problems
from compositionality.errors import UserError
from compositionality.evaluate.types import ALL_SAMPLES, CHAIN, CORRECT, GROWTH, MIXED, QUERY_VALUES, Metric
from compositionality.stats.estimate import Floats, Values
from compositionality.stats.pass_at_k import pass_at_k, pass_hat_k
from compositionality.tasks.diagnosis import FAILURES, ROLES
from compositionality.tasks.registry import known_task
from compositionality.types import Reason

RESULTS = "results.parquet"
REASONS = tuple(reason.value for reason in Reason)
REASON, FAILURE = "reason_", "failure_"  # prefixes of columns of counts: reason_wrong, failure_format
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
        ("skills", pa.list_(pa.string())),  # skills that the problem needs (Task.skills)
        ("n", pa.int64()),  # completions
        ("judged", pa.int64()),  # completions with a verdict: not those where judge or server failed
        ("right", pa.int64()),
        # Counts among the judged ones; null if the task cannot tell for any of them.
        *((name, pa.int64()) for name in CHAIN),
        ("chains_read", pa.int64()),  # completions for which the task can tell
        ("canonical", pa.int64()),  # right answers that are the gold solution, letter by letter
        ("tokens", pa.int64()),
        *((REASON + reason, pa.int64()) for reason in REASONS),
        *((FAILURE + failure, pa.int64()) for failure in FAILURES),  # null: not classified
        # Null: not measured.
        ("gold_log_prob", pa.float64()),  # of the gold solution and its EOS, in nats
        ("gold_log_prob_by_step_role", pa.list_(pa.int16())),  # steps × ROLES, in hundredths of a nat
        ("gold_rank_by_step_role", pa.list_(pa.int32())),  # of the least likely token, 1: most likely; 0: no token
        ("influence", pa.float64()),  # on the mean reward, by a step of rate 1
        ("entropy", pa.float64()),  # of the policy, nats a token
    ]
)
ADDED = ("chains_read", "canonical", "gold_rank_by_step_role")
"""Columns that tables of earlier versions lack; they are read as null."""
Measure = Callable[[pd.DataFrame], tuple[Values, Values]]
PASS_AT, ALL_OF = re.compile(r"pass@([1-9]\d*)"), re.compile(r"pass\^([1-9]\d*)")
GOLD_PASS = re.compile(r"gold_pass@([1-9]\d*)")
PAIRED = re.compile(r"(beyond|new)@(1e-\d+)|support_(kept|gained|lost)")
READABLE = 0.8  # steps are not evaluated if a smaller share of the answers could be read
ROUNDING = 0.01  # nats that a log-prob may be above 0
SOLVED = 0.25  # a problem counts as solved by a model that gives its gold solution a larger probability


def problem_sets(problems: pa.Table) -> pd.DataFrame:
    """Return group, level and data source of each problem of a file, (P,)."""
    names = ("group", "level", "data_source")
    return pd.DataFrame({"problem": range(problems.num_rows)} | {name: problems[name].to_pylist() for name in names})


def problem_columns(problems: pa.Table) -> pd.DataFrame:
    """Return the columns of ``SCHEMA`` that describe each problem of a file, (P,)."""
    pairs = [(known_task(problem.data_source), problem) for problem in iterate_problems(problems)]
    return problem_sets(problems).assign(
        cluster=[task.cluster(problem) for task, problem in pairs],
        skills=[list(task.skills(problem)) for task, problem in pairs],
    )


def count(samples: pd.DataFrame, n_problems: int) -> pd.DataFrame:
    """Count the samples of each of P problems; columns of ``SCHEMA``.

    ``samples``: problem (0 … P − 1), reason, n_tokens and, if texts were read, ``canonical`` and ``CHAIN`` (1, 0, or
    NaN if the task cannot tell).
    """
    problem, reason = samples["problem"].to_numpy(), pd.Categorical(samples["reason"], REASONS).codes
    if len(samples) and (reason.min() < 0 or not 0 <= problem.min() <= problem.max() < n_problems):
        raise UserError("the rollouts have an unknown problem or verdict; collect them again")
    reasons = np.zeros((n_problems, len(REASONS)), np.int64)
    np.add.at(reasons, (problem, reason), 1)
    counts = pd.DataFrame(reasons, columns=[REASON + reason for reason in REASONS])
    samples_P, failed = counts.sum(axis=1), counts[REASON + Reason.ERROR]
    counts = counts.assign(n=samples_P, judged=samples_P - failed, right=counts[REASON + Reason.CORRECT])
    columns = {"tokens": samples["n_tokens"]}
    if CHAIN[0] in samples:
        read = samples[CHAIN[0]].notna()
        columns |= {name: samples[name].fillna(0.0) for name in (*CHAIN, "canonical")} | {"chains_read": read}
    for name, values in columns.items():
        counts[name] = np.bincount(problem, values.to_numpy(float), n_problems).astype(np.int64)
    if "chains_read" in counts:
        unread = (counts["chains_read"] == 0) & (counts["judged"] > 0)
        counts[[*CHAIN]] = counts[[*CHAIN]].astype(float).mask(unread)
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


def check_schema(path: Path) -> None:
    """Raise UserError if ``path`` is no table of results, or has other columns than this version writes."""
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: not a table of results; make it again with --force") from error
    fields = [field for field in SCHEMA if field.name not in ADDED or field.name in schema.names]
    if not schema.equals(pa.schema(fields)):
        raise UserError(f"{path}: has other columns than this version writes; make it again with --force")


def read(path: Path) -> pd.DataFrame:
    """Read a table without its column ``skills``. UserError for another schema, and rows or values that cannot be."""
    check_schema(path)
    columns = [name for name in SCHEMA.names if name != "skills"]
    rows: pd.DataFrame = pq.read_table(path, schema=SCHEMA, columns=columns).to_pandas()
    problems = rows.groupby(["file", "arm"], sort=False)["problem"]
    sizes = problems.size()
    whole = problems.agg(lambda numbers: numbers.is_monotonic_increasing and numbers.is_unique)
    whole &= sizes == sizes.groupby("file").transform("first")
    if not whole.all():
        file, arm = whole.idxmin()
        raise UserError(f"{path}: {arm} on {file}: missing or repeated rows; make it again with --force")
    _check_values(path, rows)
    return rows


def _check_values(path: Path, rows: pd.DataFrame) -> None:
    """Raise UserError for a table without rows, and for the first row with a value that no evaluation gives."""
    if rows.empty:
        raise UserError(f"{path}: has no rows; make it again with --force")
    n, judged, right = (rows[name] for name in ("n", "judged", "right"))
    faults = {name: rows[name].isna() for name in (*KEYS, "n", "judged", "right")}
    faults["right, judged, n"] = ~((right >= 0) & (right <= judged) & (judged <= n))
    faults["gold_log_prob"] = ~rows["gold_log_prob"].fillna(0.0).between(-np.finfo(float).max, ROUNDING)
    for name, at in faults.items():
        if at.any():
            row = rows.loc[at.idxmax()]
            values = ", ".join(f"{column}={row[column]}" for column in name.split(", "))
            place = f"{path}: {row['arm']} on {row['file']}, problem {row['problem']}"
            raise UserError(f"{place}: {values}, which no evaluation gives; make it again with --force")


def concatenate(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate tables that have some of the columns."""
    rows = [table.reindex(columns=SCHEMA.names) for table in tables]
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=SCHEMA.names)


def ratio(column: str, total: str) -> Measure:
    """Return the measure of a column of counts, out of the column ``total``."""
    return lambda rows: _counts(rows[column], rows[total])


def _counts(counts: "pd.Series[float]", n: "pd.Series[int]") -> tuple[Values, Values]:
    """Return counts and ``n`` as arrays, with 0 for null counts."""
    return counts.fillna(0).to_numpy(np.int64), n.where(counts.notna(), 0).to_numpy(np.int64)


def chains_read(rows: pd.DataFrame) -> tuple[Values, Values]:
    """Return completions whose steps could be read, among those with a verdict; weight 0 if none could."""
    return _counts(rows["chains_read"], rows["judged"] if rows["chains_read"].any() else 0 * rows["judged"])


def chains(rows: pd.DataFrame, name: str) -> tuple[Values, Values]:
    """Return completions whose steps have this property, among the readable ones; weight 0 below READABLE."""
    read = rows["chains_read"].fillna(rows["judged"])  # older tables count a problem only if all were read
    return _counts(rows[name], read if read.sum() >= READABLE * rows["judged"].sum() else 0 * read)


def gold_hand_over(rows: pd.DataFrame) -> tuple[Values, Values]:
    """Return the exact probability that all steps of the gold solution but the first use earlier results."""
    copies = slice(len(ROLES) + ROLES.index("copy"), None, len(ROLES))  # of the steps after the first
    log_prob = rows["gold_log_prob_by_step_role"].map(lambda cells: np.sum(cells[copies]) / 100, na_action="ignore")
    return _exact(rows, np.exp(log_prob.astype(float)))


def gold_pass(rows: pd.DataFrame, k: int) -> tuple[Values, Values]:
    """Return the exact probability that one of ``k`` samples is the gold solution."""
    return _exact(rows, 1 - (1 - np.exp(rows["gold_log_prob"])) ** k)


def out_of_reach(rows: pd.DataFrame, share: str, bound: float) -> tuple[Values, Values]:
    """Return the problems that the model solves and that have a probability below ``bound`` under the base.

    ``share``: ``beyond``, among the problems that the model solves; ``new``, among all problems.
    """
    prob, solved = np.exp(rows["base_log_prob"]), np.exp(rows["gold_log_prob"]) > SOLVED
    counted = rows[["gold_log_prob"]].where(solved | (share == "new"))
    return _exact(counted, (solved & (prob < bound)).where(prob.notna()).astype(float))


def support(rows: pd.DataFrame, kind: str) -> tuple[Values, Values]:
    """Return the problems that both solve (``kept``), only the model (``gained``) or only the base (``lost``)."""
    probs = np.exp(rows[["gold_log_prob", "base_log_prob"]])
    pattern = {"kept": (True, True), "gained": (True, False), "lost": (False, True)}[kind]
    return _exact(rows, ((probs > SOLVED) == pattern).all(axis=1).where(probs.notna().all(axis=1)).astype(float))


def _exact(rows: pd.DataFrame, values: "pd.Series[float]") -> tuple[Values, Values]:
    """Return the values, with weight 1 for problems with a value and a ``gold_log_prob``."""
    valid = rows["gold_log_prob"].notna() & values.notna()
    return values.where(valid, 0.0).to_numpy(float), valid.to_numpy(np.int64)


MEASURES: dict[str, Measure] = {
    CORRECT: ratio("right", "judged"),
    "chains_read": chains_read,
    **{name: partial(chains, name=name) for name in CHAIN},
    "canonical": ratio("canonical", "right"),  # right answers that are the gold solution, letter by letter
    **{name: ratio(FAILURE + name, "n") for name in FAILURES if name != CORRECT},
    # The paper's atomic errors: a wrong result, or a step on a miscopied string.
    "atomic_or_miscopied": lambda rows: _counts(
        rows["failure_atomic_error"] + rows["failure_miscopied_string"], rows["n"]
    ),
    "gold_prob": lambda rows: _exact(rows, np.exp(rows["gold_log_prob"])),
    "gold_hand_over": gold_hand_over,
    MIXED: lambda rows: _counts((rows["right"] > 0) & (rows["right"] < rows["n"]), rows["judged"]),
}


def measure_of(name: str, n_samples: int) -> Measure:
    """Return the measure of this name; ``n_samples`` is the N of pass@N."""
    if ks := ks_of(name, n_samples):
        return lambda rows: passed(rows, ks, n_samples)
    if match := ALL_OF.fullmatch(name):
        return lambda rows: passed(rows, [int(match[1])], n_samples, pass_hat_k)
    if gold := GOLD_PASS.fullmatch(name):
        return partial(gold_pass, k=int(gold[1]))
    if pair := PAIRED.fullmatch(name):
        share, bound, kind = pair.groups()
        return partial(support, kind=kind) if kind else partial(out_of_reach, share=share, bound=float(bound))
    if name in QUERY_VALUES:
        return lambda rows: (rows[name].fillna(0.0).to_numpy(float), rows["judged"].to_numpy(np.int64))
    return MEASURES[name]


def ks_of(name: str, n_samples: int) -> list[int]:
    """Return the k of a measure of pass@k, and the k to subtract if any; empty for other measures."""
    if match := PASS_AT.fullmatch(name):
        return [int(match[1])]
    return {ALL_SAMPLES: [n_samples], GROWTH: [n_samples, 1]}.get(name, [])


def is_paired(name: str) -> bool:
    """Return whether a measure is of a model and its base together (``Results.join_base``)."""
    return PAIRED.fullmatch(name) is not None


CLAIMED: dict[Metric, tuple[str, ...]] = {
    Metric.ACCURACY: (CORRECT, *CHAIN, "gold_prob", "gold_hand_over", "gold_pass@8", "beyond@1e-6", "new@1e-6", "…"),
    Metric.PASS_AT_K: (CORRECT, ALL_SAMPLES, GROWTH, "pass@1", "pass@2", "…"),
    Metric.FAILURES: (*FAILURES, "atomic_or_miscopied"),
    Metric.INFLUENCE: (MIXED, *QUERY_VALUES),
}
"""Measures in claims by metric; … stands for further names of this form (``FORMED``)."""
FORMED = {Metric.ACCURACY: (GOLD_PASS, PAIRED), Metric.PASS_AT_K: (PASS_AT,)}


def is_claimed(metric: Metric, name: str) -> bool:
    """Return whether claims on a metric may compare this measure."""
    listed = name in CLAIMED.get(metric, (name,)) and name != "…"
    return listed or any(pattern.fullmatch(name) for pattern in FORMED.get(metric, ()))


def passed(
    rows: pd.DataFrame, ks: list[int], n_samples: int, estimator: Callable[..., Floats] = pass_at_k
) -> tuple[Values, Values]:
    """Return pass@k of every problem (minus pass@k of the second k), with weight N; 0 with fewer than k judged samples.

    With ``pass_hat_k`` for ``estimator``: the chance that k samples are all right.
    """
    judged_P, largest = rows["judged"].to_numpy(np.int64), max(ks)
    enough_P = (judged_P >= largest).astype(np.int64)
    right_P = np.where(enough_P, rows["right"].to_numpy(np.int64), largest)
    value_PK = estimator(right_P, np.where(enough_P, judged_P, largest), ks)
    return n_samples * (value_PK[:, 0] - value_PK[:, 1:].sum(axis=1)) * enough_P, n_samples * enough_P
