"""One judging process of the pool: ``python -m compositionality.reward.worker FD MEMORY_MB TIMEOUT_S [FUNCTION]``.

Reads chunks of items from the socket FD and answers each with its verdicts. It may hang, crash or eat memory as a
judge makes it: limits that the kernel enforces end it, and the pool sees the closed socket.
"""

import json
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.reward.function import RewardFunction, call_function, load_function
from compositionality.reward.judge import judge_with
from compositionality.tasks.registry import task_of
from compositionality.types import STOP, Verdict


def main(fd: int, memory_mb: int, timeout_s: float, function: str | None = None) -> None:
    """Serve until the pool closes its end, or its process is gone; an error in place of *ready* ends it too.

    ``memory_mb``: of address space, beyond what the process has once ``function`` is imported.
    """
    connection = Connection(fd)
    try:
        loaded = load_function(function) if function else None
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (memory_mb << 20),) * 2)
        connection.send_bytes(b"ready")
        while True:
            chunk = json.loads(connection.recv_bytes())
            verdicts = json.dumps([_verdict(loaded, timeout_s, *item) for item in chunk]).encode()
            connection.send_bytes(verdicts)
    except UserError as error:
        connection.send_bytes(str(error).encode())
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _verdict(own: RewardFunction | None, timeout_s: float, *item: Any) -> tuple[Any, ...]:
    """Return one verdict; if the judge takes longer than ``timeout_s``, SIGALRM's default action ends this process.

    Imports are not of this time. ``own``, a reward function, gets responses that the limit has cut off as well, as verl
    does it.
    """
    data_source, response, ground_truth, finish_reason, extra_info = item
    judge: Callable[[str, str], Verdict]
    if own is None:
        task = task_of(data_source)
        judge = task.verdict
        with suppress(Exception):  # what cannot be imported is the verdict's error
            _ = [*map(import_module, task.libraries)]
    else:
        judge, finish_reason = partial(call_function, own, data_source, extra_info), STOP
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    verdict = judge_with(judge, response, ground_truth, finish_reason)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return verdict.score, verdict.reason.value, verdict.answer, dict(verdict.metrics), verdict.error


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])
