"""A problem file as a task of inspect_ai. Needs `pip install 'inspect_ai>=0.3.285' openai`.

PROBLEMS=$PWD/data/composition/seed0/string_task/test_heldout.parquet
inspect eval examples/adapters/inspect_problems.py -T problems=$PROBLEMS --model openai/MODEL
"""

from compositionality.adapters.inspect_task import inspect_task  # first, as it says how to install inspect_ai

# isort: split
from inspect_ai import Task, task


@task  # type: ignore[untyped-decorator]
def problem_file(problems: str, workers: int = 1, max_error_rate: float = 0.01) -> Task:
    """Return the task of a problem file; see ``inspect_task``."""
    return inspect_task(problems, workers=workers, max_error_rate=max_error_rate)
