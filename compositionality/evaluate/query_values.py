"""Per-step influence of one replicate's models: from ``MODEL/influence.parquet`` to values of each query."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from compositionality.data.artefact import tree_hash, verify
from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.evaluate.counts import Counted, ProblemCounts, Stratum
from compositionality.types import MIXED, QUERY_VALUES

TABLE = "influence.parquet"
QUERIES = "queries"
MAKER = "bash/behavior_injection/influence.sh"
_TYPES = pa.schema(
    [("problem", pa.int64()), ("group", pa.string()), ("correct", pa.int64()), ("samples", pa.int64())]
    + [(name, pa.float64()) for name in QUERY_VALUES]
)  # fmt: skip


def tables_of(folder: Path) -> dict[str, Path]:
    """The table of each model. UserError if there is none."""
    found = {path.parent.name: path for path in sorted(folder.glob(f"*/{TABLE}"))}
    if not found:
        raise UserError(f"{folder}: no MODEL/{TABLE}; run {MAKER}")
    return found


def read_query_values(tables: Mapping[str, Path]) -> tuple[Counted, dict[str, str]]:
    """Values by model, and hashes of what they were made from; levels are put together.

    UserError for models with other queries or settings, or a table that is altered or older than its completions.
    """
    counted: dict[tuple[str, str], ProblemCounts] = {}
    inputs: dict[str, str] = {}
    first: tuple[object, list[int]] | None = None
    for model, path in tables.items():
        made = verify(path)
        rollouts = path.parent / "rollouts"
        if rollouts.is_dir() and tree_hash(rollouts) != made.inputs["rollouts"]:
            raise UserError(f"{rollouts}: newer than {path.name}; run {MAKER} again")
        if inputs.setdefault(f"problems/{QUERIES}", made.inputs["problems"]) != made.inputs["problems"]:
            raise UserError(f"{path}: made from other problems than the models beside it; run {MAKER} again")
        rows = read_table(path, _TYPES.names, types=_TYPES, gaps=["entropy"]).to_pandas()
        measured = made.settings, rows["problem"].tolist()
        first = first or measured
        for what, one, other in zip(("settings", "queries"), measured, first, strict=True):
            if one != other:
                raise UserError(f"{path}: measured with other {what} than the models beside it; run {MAKER} again")
        inputs[model] = made.inputs["rollouts"]
        counted[model, QUERIES] = _values(rows)
    return counted, inputs


def _values(rows: pd.DataFrame) -> ProblemCounts:
    mixed = (rows["correct"] > 0) & (rows["correct"] < rows["samples"])
    values = {name: rows[name].to_numpy(float) for name in QUERY_VALUES}
    known = rows["entropy"].notna().to_numpy(np.int64)  # a query without completions is no measurement
    return ProblemCounts(
        [Stratum(group, 0) for group in rows["group"]],
        known,
        rows["correct"].to_numpy(np.int64),
        {MIXED: mixed.to_numpy(np.int64), **{name: np.nan_to_num(of) for name, of in values.items()}},
    )
