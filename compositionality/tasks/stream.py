"""Rows for a file: candidates in order of index, duplicates skipped, levels filled evenly, any number of processes."""

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any

from compositionality.errors import UserError
from compositionality.types import Problem

Candidate = tuple[Hashable, Problem]
MakeChunk = Callable[[range], list[Candidate]]
CHUNK = 200
ALONE_S = 1.0  # seconds of work in this process before others help: to start them takes as long
MAX_CANDIDATES_PER_PROBLEM = 20
MAX_CANDIDATES_WITHOUT_NEW = 40_000  # in a row


def distinct_problems(
    make: MakeChunk, levels: Sequence[int], count: int, workers: int, advice: str, *, evenly: bool = True
) -> Iterator[Problem]:
    """Return ``count`` problems, none twice; the same number at every level, or without ``evenly`` as many as come.

    ``make`` (picklable) gives the candidates of a range of indices, each with what makes two of them the same; rows
    keep the index of their candidate. UserError with ``advice`` if a level has too few different ones.
    """
    if not levels:
        raise UserError("levels=[]: give at least one")
    share = count // len(levels) if evenly else count
    check_count(count, len(levels) if evenly else 1)
    return _distinct(make, levels, count, share, workers, advice)


def _distinct(
    make: MakeChunk, levels: Sequence[int], count: int, share: int, workers: int, advice: str
) -> Iterator[Problem]:
    keys: set[Hashable] = set()
    filled: Counter[int] = Counter()
    limit = MAX_CANDIDATES_PER_PROBLEM * (count + 100)
    tried = last_new = 0
    for key, problem in _candidates(make, limit, min(CHUNK, -(-count // workers)), workers):
        tried += 1
        if filled[problem.level] == share or key in keys:
            if tried - last_new == MAX_CANDIDATES_WITHOUT_NEW:
                break
            continue
        last_new = tried
        keys.add(key)
        filled[problem.level] += 1
        yield problem
        if filled.total() == count:
            return
    short = min(levels, key=lambda level: filled[level])
    raise UserError(f"level {short} has only {filled[short]} different problems among {tried} candidates; {advice}")


def changed_options(options: Any, wording: Collection[str]) -> list[tuple[str, Any]]:
    """Return name and value of the options that are not the defaults, but for those of the ``wording``: they decide
    which problems are drawn."""
    entries = [(entry.name, getattr(options, entry.name), entry.default) for entry in fields(options)]
    return [(name, value) for name, value, default in entries if name not in wording and value != default]


def check_choice(key: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise UserError(f"{key}={value}: choose one of {', '.join(choices)}")


def check_levels(levels: Sequence[int], allowed: Sequence[int], what: str = "") -> None:
    """Raise UserError for levels that are none, twice the same, or not ``allowed``; ``what`` they are the number of."""
    if not levels or len(set(levels)) < len(levels) or not set(levels) <= set(allowed):
        message = f"levels={list(levels)}: give different whole numbers from {allowed[0]} to {allowed[-1]}"
        raise UserError(f"{message}{what and ', '}{what}")


def check_count(count: int, levels: int) -> None:
    """Raise UserError for a number of problems that the levels do not share evenly."""
    if count < 1 or count % levels:
        needed = "a whole number from 1 on" if levels == 1 else f"a multiple of {levels}, the number of levels"
        raise UserError(f"count={count}: give {needed}")


def _candidates(make: MakeChunk, limit: int, size: int, workers: int) -> Iterator[Candidate]:
    chunks = iter([range(start, min(start + size, limit)) for start in range(0, limit, size)])
    began = time.monotonic()
    for chunk in chunks:
        yield from make(chunk)
        if workers > 1 and time.monotonic() - began > ALONE_S:
            break
    else:
        return
    from concurrent.futures import ProcessPoolExecutor  # slow to import
    from multiprocessing import get_context

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = deque(pool.submit(make, chunk) for chunk in islice(chunks, workers))
        while waiting:
            candidates = waiting.popleft().result()
            waiting.extend(pool.submit(make, chunk) for chunk in islice(chunks, 1))
            yield from candidates
