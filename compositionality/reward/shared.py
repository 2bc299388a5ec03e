"""Judging for programs that score many responses at once, each in a thread of its own."""

from queue import SimpleQueue

from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.types import Verdict


class SharedJudge:
    """Up to ``workers`` judging processes, started when they are first needed, each with one response at a time.

    Threads may share it: a call waits until a process is free. A judge that fails, hangs (for ``timeout_s``) or crashes
    gives an ERROR verdict; the caller decides how many errors are too many.
    """

    def __init__(self, workers: int, timeout_s: float = 10.0, function: str | None = None) -> None:
        self._timeout_s, self._function = timeout_s, function
        self._idle: SimpleQueue[JudgePool | None] = SimpleQueue()
        for _ in range(max(1, workers)):
            self._idle.put(None)

    def judge(self, item: JudgeInput) -> Verdict:
        """Judge one response. UserError for an unknown ``data_source``, or a function that does not load."""
        pool = self._idle.get()
        try:
            pool = pool or JudgePool(1, self._timeout_s, 1.0, function=self._function)
            return pool.judge([item])[0]
        finally:
            self._idle.put(pool)
