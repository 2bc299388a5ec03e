"""Judging in processes that can be killed: a judge that hangs, crashes or runs out of memory loses only its item.

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
    """One response to judge, with its truth; only reward functions read ``extra_info``."""

    data_source: str
    response: str
    ground_truth: Any
    finish_reason: str = STOP
    extra_info: Any = None


class Worker:
    """One judging process and its current chunk (positions in the batch).

    It may use ``memory_mb`` of address space and ``timeout_s`` seconds per item; ``function``: a reward function.
    """

    def __init__(self, memory_mb: int, timeout_s: float, function: str | None) -> None:
        our_end, worker_end = socket.socketpair()
        words = [str(worker_end.fileno()), str(memory_mb), str(timeout_s), *filter(None, [function])]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "compositionality.reward.worker", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[worker_end.fileno()],
            env={**os.environ, "PYTHONHASHSEED": "0"},  # a verdict that the order of a set decides is the same again
            start_new_session=True,
        )
        worker_end.close()
        self.connection = Connection(our_end.detach())
        self.timeout_s = timeout_s
        self.chunk: list[int] = []
        self.deadline = 0.0

    def wait_until_ready(self) -> None:
        """Wait until the process has started. UserError if it cannot."""
        message = b""
        with contextlib.suppress(EOFError):
            message = self.connection.recv_bytes() if self.connection.poll(START_S) else message
        if message != b"ready":
            self.kill()
            fault = f"a judging process does not start (exit code {self.process.returncode})"
            raise UserError(message.decode() or fault)

    def send(self, chunk: list[int], encoded: bytes) -> None:
        """Send a chunk and set its deadline, in case the worker's own alarm fails."""
        self.chunk = chunk
        self.deadline = time.monotonic() + self.timeout_s * len(chunk) + GRACE_S
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the worker died: receive() notices
            self.connection.send_bytes(encoded)

    def receive(self) -> bytes | None:
        """Return the encoded verdicts on the chunk; None if the worker died or has not answered."""
        try:
            return self.connection.recv_bytes() if self.connection.poll() else None
        except (EOFError, ConnectionResetError):
            return None

    def kill(self) -> None:
        """Kill the process and all its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.connection.close()


class JudgePool:
    """Judges batches in ``workers`` processes. More errors than ``max_error_rate`` of all items raise UserError (P5).

    ``function``, FILE.py[:NAME], judges instead of the tasks; UserError if it cannot be loaded.
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

        Items with finish reason FAILED get ERROR too, without a judge, and do not count as its errors.
        """
        if self._function is None:
            from compositionality.tasks.registry import task_of  # with a reward function there is no task

            for data_source in {item.data_source for item in items}:
                task_of(data_source)
        responses = [item for item in items if item.finish_reason != FAILED]
        self.judged += len(responses)
        verdicts = iter(self._judge(responses))
        return [ERROR if item.finish_reason == FAILED else next(verdicts) for item in items]

    def _judge(self, items: Sequence[JudgeInput]) -> list[Verdict]:
        """Keep all workers busy until every item has its verdict; items of a worker that died are judged one by one.

        A chunk is encoded in advance, and answers are parsed after free workers have a new chunk, so that none waits.
        """
        verdicts = [ERROR] * len(items)
        size = max(1, min(CHUNK, -(-len(items) // (2 * len(self.workers)))))  # smaller if there are few items
        places = range(len(items))
        waiting = deque([*places[start : start + size]] for start in places[::size])
        ahead: tuple[list[int], bytes] | None = None
        answers: list[tuple[list[int], bytes | None]] = []

        def encode(chunk: list[int]) -> tuple[list[int], bytes]:
            return chunk, json.dumps([items[place] for place in chunk], default=plain).encode()

        try:
            while True:
                for worker in self.workers:
                    if not worker.chunk and (ahead or waiting):
                        worker.send(*(ahead or encode(waiting.popleft())))
                        ahead = None
                ahead = ahead or (encode(waiting.popleft()) if waiting else None)
                for chunk, answer in answers:
                    fields = json.loads(answer) if answer else []
                    judged = [Verdict(score, Reason(reason), *more) for score, reason, *more in fields] or [ERROR]
                    for place, verdict in zip(chunk, judged, strict=True):
                        verdicts[place] = verdict
                        if verdict.reason is Reason.ERROR:
                            self._count_error(verdict)
                busy = [worker for worker in self.workers if worker.chunk]
                if not busy:
                    return verdicts
                timeout = max(0.0, min(worker.deadline for worker in busy) - time.monotonic())
                ready = wait([worker.connection for worker in busy], timeout=timeout)
                answers = []
                for worker in busy:
                    if worker.connection in ready or time.monotonic() > worker.deadline:
                        answer, chunk, worker.chunk = worker.receive(), worker.chunk, []
                        if answer is None:
                            self.replace(worker)
                        if answer is None and len(chunk) > 1:
                            waiting.extend([place] for place in chunk)
                        else:
                            answers.append((chunk, answer))
        except BaseException:
            for worker in self.workers:
                if worker.chunk:  # its answer would be read as one of the next batch
                    self.replace(worker)
            raise

    def _count_error(self, verdict: Verdict) -> None:
        """Count an error; raise UserError as soon as the limit is exceeded."""
        self.errors += 1
        if self.errors > self._max_error_rate * self.judged:
            raise UserError(
                f"the judge failed on {self.errors} of {self.judged} responses, more than the "
                f"{self._max_error_rate:.2%} allowed (the last: {verdict.error or 'it gave no reason'}); "
                "fix the judge or raise max_error_rate"
            )

    def replace(self, worker: Worker) -> None:
        worker.kill()
        fresh = self._start()
        self.workers[self.workers.index(worker)] = fresh
        fresh.wait_until_ready()


class SharedJudge:
    """Up to ``workers`` judging processes, started when first needed, each with one response at a time.

    Threads may share it: a call waits until a process is free. A judge that fails, hangs (for ``timeout_s``) or crashes
    gives an ERROR verdict; the caller decides how many errors to accept.
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


def plain(value: Any) -> Any:
    """Convert numpy's arrays and numbers to lists and numbers, other values that JSON lacks to text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
