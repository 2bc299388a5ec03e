"""Rows for a file: candidates in order of index, duplicates skipped, levels filled evenly, any number of processes."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count as count_from
from multiprocessing import get_context

from compositionality.errors import UserError
from compositionality.tasks.base import Problem
from compositionality.tasks.string.clean import CleanItem, StringTask

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
    seen: set[tuple[int, str, str]] = set()
    filled: Counter[int] = Counter()
    limit = PATIENCE * count + CHUNK
    for item in _items(task, split, seed, limit, workers):
        key = (item.level, item.input, item.output)
        if filled[item.level] == count // len(levels) or key in seen:
            continue
        seen.add(key)
        filled[item.level] += 1
        yield task.render(item, seed)
        if filled.total() == count:
            return
    short = min(levels, key=lambda level: filled[level])
    raise UserError(
        f"level {short} has only {filled[short]} different problems among {limit} candidates; "
        "ask for fewer rows, longer inputs or more functions"
    )


def _items(task: StringTask, split: str, seed: int, limit: int, workers: int) -> Iterator[CleanItem]:
    chunk = partial(_chunk, task, split, seed, limit)
    starts = range(0, limit, CHUNK)
    if workers == 1:
        for start in starts:
            yield from (task.item(split, seed, index) for index in range(start, min(start + CHUNK, limit)))
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(chunk, start) for start in starts[: 2 * workers]]
        for following in count_from(2 * workers):
            if not waiting:
                return
            yield from waiting.pop(0).result()
            if following < len(starts):
                waiting.append(pool.submit(chunk, starts[following]))


def _chunk(task: StringTask, split: str, seed: int, limit: int, start: int) -> list[CleanItem]:
    return [task.item(split, seed, index) for index in range(start, min(start + CHUNK, limit))]
