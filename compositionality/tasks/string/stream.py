"""Rows of string problems for a file."""

from collections.abc import Iterator
from functools import partial

from compositionality.tasks.stream import Candidate, distinct_problems
from compositionality.tasks.string.clean import StringTask
from compositionality.types import Problem


def problem_stream(task: StringTask, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
    """``count`` problems of the stream (split, seed), the same number at every level, none twice.

    Two candidates of a level with the same input and the same answer count as the same problem. Rows keep the index
    of their candidate, so ``task.problem(split, seed, row.index)`` gives each of them again.
    """
    advice = "ask for fewer rows, longer inputs or more functions"
    return distinct_problems(partial(_chunk, task, split, seed), task.options.levels, count, workers, advice)


def _chunk(task: StringTask, split: str, seed: int, indices: range) -> list[Candidate]:
    items = [task.item(split, seed, index) for index in indices]
    return [((item.level, item.input, item.output), task.render(item, seed)) for item in items]
