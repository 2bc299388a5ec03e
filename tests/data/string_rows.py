"""Hand-made rows of the published schema, of both tasks."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.errors import UserError
from compositionality.tasks.string.program import parse


def row(expression: str, x: str, source: str = "codeio-forward-incomplete-depth2", level: int = 2) -> dict[str, Any]:
    """A row as the files on the Hub have it."""
    code = f"def main_solution(x):\n    return {expression}"
    try:
        output = parse(expression).value(x)
    except UserError:
        output = "?"
    truth = {"ref_input": {"x": x}, "ref_output": output, "ref_code": code, "funcname": "main_solution"}
    return {
        "data_source": source,
        "prompt": [{"content": f"What does this return for {x}?\n{code}", "role": "user"}],
        "ability": "code",
        "reward_model": {"ground_truth": json.dumps(truth), "style": "rule"},
        "extra_info": {"depth": level, "index": 0, "split": "dummy"},
    }


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def countdown_row(numbers: list[int], target: int, source: str = "reasoning-gym-countdown-depth3") -> dict[str, Any]:
    """A Countdown row, as the paper's files have it."""
    return {
        "data_source": source,
        "prompt": [{"content": f"Reach {target} from {numbers}.", "role": "user"}],
        "ability": "reasoning",
        "reward_model": {"ground_truth": json.dumps({"target": target, "numbers": numbers}), "style": "rule"},
        "extra_info": {"depth": len(numbers), "index": 0, "split": "train"},
    }
