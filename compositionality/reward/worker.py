"""One judging process of the pool: ``python -m compositionality.reward.worker FD MEMORY_MB TIMEOUT_S [JUDGE]``.

Reads chunks of items from the socket FD and answers each with its verdicts. It may hang, crash or eat memory as a
judge makes it: limits that the kernel enforces end it, and the pool sees the closed socket.
"""

import importlib
import json
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import cast

from compositionality.reward.judge import judge_with
from compositionality.tasks.registry import Judge, find_judge

FindJudge = Callable[[str], Judge]


def main(fd: int, memory_mb: int, timeout_s: float, judge_path: str | None = None) -> None:
    """Serve until the pool closes its end, or its process is gone."""
    find = _injected(judge_path) if judge_path else find_judge
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
    connection = Connection(fd)
    try:
        connection.send_bytes(b"ready")
        while True:
            chunk = json.loads(connection.recv_bytes())
            verdicts = json.dumps([_verdict(find, timeout_s, *item) for item in chunk]).encode()
            connection.send_bytes(verdicts)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _verdict(find: FindJudge, timeout_s: float, *item: str) -> tuple[float, str, str | None]:
    """One verdict; if the judge takes longer than ``timeout_s``, SIGALRM's default action ends this process."""
    data_source, response, ground_truth, finish_reason = item
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    verdict = judge_with(find(data_source), response, ground_truth, finish_reason)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return verdict.score, verdict.reason.value, verdict.answer


def _injected(path: str) -> FindJudge:
    """A judge that stands for every data source, named MODULE:FUNCTION."""
    module, _, name = path.partition(":")
    judge = cast(Judge, getattr(importlib.import_module(module), name))
    return lambda _: judge


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])
