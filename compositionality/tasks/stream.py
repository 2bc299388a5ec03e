"""Rows for a file: candidates in order of index, duplicates skipped, levels filled evenly, any number of processes."""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice

from compositionality.errors import UserError
from compositionality.types import Problem

Candidate = tuple[Hashable, Problem]
MakeChunk = Callable[[range], list[Candidate]]
CHUNK = 2_000
PATIENCE = 20


def distinct_problems(
    make: MakeChunk, levels: Sequence[int], count: int, workers: int, advice: str
) -> Iterator[Problem]:
    """``count`` problems, the same number at every level, none twice.

    ``make`` (picklable) gives the candidates of a range of indices, each with what makes two of them the same; rows
    keep the index of their candidate. UserError with ``advice`` if a level has too few different ones.
    """
    if not levels:
        raise UserError("levels=[]: give at least one")
    if count < 1 or count % len(levels):
        raise UserError(f"count={count} is not a positive multiple of the {len(levels)} levels")
    seen: set[Hashable] = set()
    filled: Counter[int] = Counter()
    limit = PATIENCE * count + CHUNK
    for key, problem in _candidates(make, limit, min(CHUNK, -(-count // workers)), workers):
        if filled[problem.level] == count // len(levels) or key in seen:
            continue
        seen.add(key)
        filled[problem.level] += 1
        yield problem
        if filled.total() == count:
            return
    short = min(levels, key=lambda level: filled[level])
    raise UserError(f"level {short} has only {filled[short]} different problems among {limit} candidates; {advice}")


def _candidates(make: MakeChunk, limit: int, size: int, workers: int) -> Iterator[Candidate]:
    chunks = [range(start, min(start + size, limit)) for start in range(0, limit, size)]
    if workers == 1:
        for chunk in chunks:
            yield from make(chunk)
        return
    from concurrent.futures import ProcessPoolExecutor  # slow to import
    from multiprocessing import get_context

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = deque(pool.submit(make, chunk) for chunk in chunks[:workers])
        following = iter(chunks[workers:])
        while waiting:
            found = waiting.popleft().result()
            waiting.extend(pool.submit(make, chunk) for chunk in islice(following, 1))
            yield from found
