"""Rows of Countdown problems for a file."""

from collections.abc import Iterator
from functools import partial

from compositionality.tasks.countdown.clean import CountdownTask
from compositionality.tasks.stream import Candidate, distinct_problems
from compositionality.types import Problem


def countdown_stream(task: CountdownTask, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
    """``count`` problems of the stream (split, seed), the same number at every level, none twice.

    The same numbers, in any order, with the same target are the same problem. Rows keep the index of their candidate,
    so ``task.problem(split, seed, row.index)`` gives each of them again.
    """
    advice = "ask for fewer rows, or widen numbers or target"
    return distinct_problems(partial(_chunk, task, split, seed), task.options.levels, count, workers, advice)


def _chunk(task: CountdownTask, split: str, seed: int, indices: range) -> list[Candidate]:
    items = task.items(split, seed, indices)
    return [((item.target, *sorted(item.numbers)), task.render(item, seed)) for item in items]
