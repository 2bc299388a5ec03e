"""Judging in processes that can be killed: a judge that hangs, crashes or eats memory costs its own item only.

``JudgePool`` judges batches, ``SharedJudge`` responses of many threads.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, NamedTuple, Self

from compositionality.errors import UserError
from compositionality.types import FAILED, STOP, Reason, Verdict

CHUNK = 256
START_S = 120.0
GRACE_S = 2.0
ERROR = Verdict(0.0, Reason.ERROR, error="it crashed, or took too long")


class JudgeInput(NamedTuple):
    """One response to judge, with what it is judged by; only a reward function looks at ``extra_info``."""

    data_source: str
    response: str
    ground_truth: Any
    finish_reason: str = STOP
    extra_info: Any = None


class Worker:
    """One judging process and the chunk that it holds (positions in the batch).

    It may use ``memory_mb`` of address space and ``timeout_s`` seconds for an item; ``function``: what it calls.
    """

    def __init__(self, memory_mb: int, timeout_s: float, function: str | None) -> None:
        ours, theirs = socket.socketpair()
        words = [str(theirs.fileno()), str(memory_mb), str(timeout_s), *filter(None, [function])]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "compositionality.reward.worker", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self.connection = Connection(ours.detach())
        self.timeout_s = timeout_s
        self.chunk: list[int] = []
        self.deadline = 0.0

    def wait_until_ready(self) -> None:
        """Wait until the process has started; UserError if it cannot."""
        said = b""
        with contextlib.suppress(EOFError):
            said = self.connection.recv_bytes() if self.connection.poll(START_S) else said
        if said != b"ready":
            self.kill()
            died = f"a judging process does not start (exit code {self.process.returncode})"
            raise UserError(said.decode() or died)

    def give(self, chunk: list[int], encoded: bytes) -> None:
        """Hand over a chunk; the deadline is a second line behind the worker's own alarm."""
        self.chunk = chunk
        self.deadline = time.monotonic() + self.timeout_s * len(chunk) + GRACE_S
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it just died: receive() says so
            self.connection.send_bytes(encoded)

    def receive(self) -> bytes | None:
        """Return the encoded verdicts on the chunk; None if the worker died or has not answered."""
        try:
            return self.connection.recv_bytes() if self.connection.poll() else None
        except (EOFError, ConnectionResetError):
            return None

    def kill(self) -> None:
        """End the process, and what it started, for certain."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.connection.close()


class JudgePool:
    """Judges batches in ``workers`` processes. More errors than ``max_error_rate`` of all items is a UserError (P5).

    ``function``, FILE.py[:NAME], judges in place of the tasks; UserError if it cannot be loaded.
    """

    def __init__(
        self,
        workers: int = 1,
        timeout_s: float = 10.0,
        max_error_rate: float = 0.01,
        *,
        memory_mb: int = 2048,
        function: str | None = None,
    ) -> None:
        self._start = partial(Worker, memory_mb, timeout_s, function)
        self._function = function
        self._max_error_rate = max_error_rate
        self.workers = [self._start() for _ in range(max(1, workers))]
        self.judged = 0
        self.errors = 0
        try:
            for worker in self.workers:
                worker.wait_until_ready()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.workers = []

    def judge(self, items: Sequence[JudgeInput]) -> list[Verdict]:
        """Return one verdict per item, in order; an item on which the judge fails gets ERROR.

        So does one whose finish reason is FAILED, which no judge sees and none is blamed for.
        """
        if self._function is None:
            from compositionality.tasks.registry import task_of  # with a reward function there is no task

            for data_source in {item.data_source for item in items}:
                task_of(data_source)
        responses = [item for item in items if item.finish_reason != FAILED]
        self.judged += len(responses)
        verdicts = iter(_Batch(self, responses).run())
        return [ERROR if item.finish_reason == FAILED else next(verdicts) for item in items]

    def count_error(self, verdict: Verdict) -> None:
        """Stop the run as soon as the limit is passed whatever the rest of the batch gives."""
        self.errors += 1
        if self.errors > self._max_error_rate * self.judged:
            raise UserError(
                f"the judge failed on {self.errors} of {self.judged} responses, more than the "
                f"{self._max_error_rate:.2%} allowed (the last: {verdict.error or 'it gave no reason'}); "
                "fix the judge or raise max_error_rate"
            )

    def replace(self, worker: Worker) -> None:
        """Kill ``worker`` and start another in its place."""
        worker.kill()
        fresh = self._start()
        self.workers[self.workers.index(worker)] = fresh
        fresh.wait_until_ready()


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


class _Batch:
    """One call of ``judge``: chunks waiting, one encoded ahead, chunks being judged, verdicts found."""

    def __init__(self, pool: JudgePool, items: Sequence[JudgeInput]) -> None:
        self._pool = pool
        self._items = items
        self._verdicts = [ERROR] * len(items)
        self._waiting = deque(_chunks(len(items), len(pool.workers)))
        self._next: tuple[list[int], bytes] | None = None

    def run(self) -> list[Verdict]:
        """Keep all workers busy until every item has its verdict."""
        try:
            self._hand_out()
            while self._busy():
                self._collect()
        except BaseException:
            for worker in self._busy():  # its answer would be taken for one of the next batch
                self._pool.replace(worker)
            raise
        return self._verdicts

    def _busy(self) -> list[Worker]:
        return [worker for worker in self._pool.workers if worker.chunk]

    def _hand_out(self) -> None:
        for worker in self._pool.workers:
            if not worker.chunk and (ready := self._encoded()):
                worker.give(*ready)
                self._next = None
        self._encoded()

    def _encoded(self) -> tuple[list[int], bytes] | None:
        """Return the next chunk, prepared while the workers are busy so that none waits; None if none is left."""
        if self._next is None and self._waiting:
            chunk = self._waiting.popleft()
            self._next = chunk, json.dumps([self._items[position] for position in chunk], default=plain).encode()
        return self._next

    def _collect(self) -> None:
        """Take answers, give the free workers more, and only then read what the answers say."""
        answers = [(worker.chunk, self._release(worker)) for worker in self._ended()]
        for chunk, answer in answers:
            if answer is None and len(chunk) > 1:
                self._waiting.extend([position] for position in chunk)
        self._hand_out()
        for chunk, answer in answers:
            if answer is not None:
                self._note(chunk, _decode(answer))
            elif len(chunk) == 1:
                self._note(chunk, [ERROR])

    def _ended(self) -> list[Worker]:
        """Return the workers that have answered, died or used up their time."""
        busy = self._busy()
        patience = max(0.0, min(worker.deadline for worker in busy) - time.monotonic())
        heard = wait([worker.connection for worker in busy], timeout=patience)
        return [worker for worker in busy if worker.connection in heard or time.monotonic() > worker.deadline]

    def _release(self, worker: Worker) -> bytes | None:
        worker.chunk = []
        answer = worker.receive()
        if answer is None:
            self._pool.replace(worker)
        return answer

    def _note(self, chunk: list[int], verdicts: list[Verdict]) -> None:
        for position, verdict in zip(chunk, verdicts, strict=True):
            self._verdicts[position] = verdict
            if verdict.reason is Reason.ERROR:
                self._pool.count_error(verdict)


def _decode(answer: bytes) -> list[Verdict]:
    return [Verdict(score, Reason(reason), *rest) for score, reason, *rest in json.loads(answer)]


def plain(value: Any) -> Any:
    """Return numpy's arrays and numbers as lists and numbers, what else JSON does not have as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _chunks(n_items: int, workers: int) -> list[list[int]]:
    """Return 0..n_items in chunks: large ones for throughput, small ones where few items must be shared."""
    size = max(1, min(CHUNK, -(-n_items // (2 * workers))))
    return [list(range(start, min(start + size, n_items))) for start in range(0, n_items, size)]
