r"""The problem file $PROBLEMS as a task of LightEval (installation: compositionality/adapters/README.md).

export PROBLEMS=data/composition/seed0/string_task/test_heldout.parquet
lighteval accelerate "model_name=MODEL" "compositionality|0" --custom-tasks examples/adapters/lighteval_problems.py
"""

import os

from compositionality.adapters.lighteval_task import lighteval_task

PROBLEMS = os.environ.get("PROBLEMS", "data/composition/seed0/string_task/test_heldout.parquet")
MAX_TOKENS = int(os.environ.get("MAX_TOKENS", "1024"))  # per answer; less than the model's context

TASKS_TABLE = [lighteval_task(PROBLEMS, max_tokens=MAX_TOKENS)]
