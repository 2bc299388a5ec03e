"""Rows of a data source that no task knows, for the functions of ``own_reward.py``."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

OWN = Path(__file__).with_name("own_reward.py")
SOURCE = "somebody/else"


def write_own_rows(made_by_task: Path, path: Path) -> Path:
    """The rows of a file of the string task, as another library would hold them: a struct as truth, no level."""
    rows = [
        {
            "data_source": SOURCE,
            "prompt": row["prompt"],
            "ability": "strings",
            "reward_model": {
                "style": "rule",
                "ground_truth": {"answer": json.loads(row["reward_model"]["ground_truth"])["ref_output"]},
            },
            "extra_info": {"index": number, "least": 0.01},
        }
        for number, row in enumerate(pq.read_table(made_by_task).to_pylist())
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path
