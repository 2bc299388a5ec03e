"""Rows for a file: candidates in order of index, duplicates skipped, levels filled evenly, any number of processes."""

from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from multiprocessing import get_context

from compositionality.errors import UserError
from compositionality.tasks.base import Problem
from compositionality.tasks.string.clean import StringTask

Key = tuple[int, str, str]
CHUNK = 2_000
PATIENCE = 20


def problem_stream(task: StringTask, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
    """``count`` problems of the stream (split, seed), the same number at every level, none twice.

    Two candidates of a level with the same input and the same answer count as the same problem. Rows keep the index
    of their candidate, so ``task.problem(split, seed, row.index)`` gives each of them again.
    """
    levels = task.options.levels
    if count < 1 or count % len(levels):
        raise UserError(f"count={count} is not a positive multiple of the {len(levels)} levels")
    seen: set[Key] = set()
    filled: Counter[int] = Counter()
    limit = PATIENCE * count + CHUNK
    for key, problem in _candidates(task, split, seed, limit, workers):
        if filled[problem.level] == count // len(levels) or key in seen:
            continue
        seen.add(key)
        filled[problem.level] += 1
        yield problem
        if filled.total() == count:
            return
    short = min(levels, key=lambda level: filled[level])
    raise UserError(
        f"level {short} has only {filled[short]} different problems among {limit} candidates; "
        "ask for fewer rows, longer inputs or more functions"
    )


def _candidates(task: StringTask, split: str, seed: int, limit: int, workers: int) -> Iterator[tuple[Key, Problem]]:
    chunk = partial(_chunk, task, split, seed, limit)
    starts = range(0, limit, CHUNK)
    if workers == 1:
        for start in starts:
            yield from chunk(start)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = deque(pool.submit(chunk, start) for start in starts[:workers])
        following = iter(starts[workers:])
        while waiting:
            found = waiting.popleft().result()
            waiting.extend(pool.submit(chunk, start) for start in islice(following, 1))
            yield from found


def _chunk(task: StringTask, split: str, seed: int, limit: int, start: int) -> list[tuple[Key, Problem]]:
    """Candidates ``start`` to ``start + CHUNK``, each with what makes two of them the same."""
    items = [task.item(split, seed, index) for index in range(start, min(start + CHUNK, limit))]
    return [((item.level, item.input, item.output), task.render(item, seed)) for item in items]
