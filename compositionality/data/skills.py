"""Which skills (named functions) a problem asks for."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

_FUNCTION = re.compile(r"func_\d+")


def functions_of(row: Mapping[str, Any]) -> list[str]:
    """Distinct functions of a problem row: its own list (``extra_info.functions``), else the names in its code."""
    named = (row["extra_info"] or {}).get("functions")
    return list(dict.fromkeys(_FUNCTION.findall(_code(row)) if named is None else named))


def functions_of_all(problems: pa.Table) -> list[list[str]]:
    """``functions_of`` for every row of a problem file."""
    columns = problems.select(["prompt", "reward_model", "extra_info"])
    return [functions_of(row) for batch in columns.to_batches(max_chunksize=8192) for row in batch.to_pylist()]


def _code(row: Mapping[str, Any]) -> str:
    """The expression that is asked for, without the definitions before it: from the gold answer, else the prompt."""
    code = _ref_code(row["reward_model"]["ground_truth"]) or row["prompt"][-1]["content"]
    before, main, after = code.partition("def main_solution")
    return after if main else before


def _ref_code(ground_truth: str) -> str:
    try:
        truth = json.loads(ground_truth)
    except json.JSONDecodeError:
        return ""
    code = truth.get("ref_code") if isinstance(truth, dict) else None
    return code if isinstance(code, str) else ""
