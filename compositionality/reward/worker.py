"""One judging process of the pool: ``python -m compositionality.reward.worker FD MEMORY_MB TIMEOUT_S [FUNCTION]``.

Reads chunks of items from the socket FD and answers each with its verdicts. A judge may make it hang, crash or use too
much memory: then limits of the kernel end it, and the pool sees the closed socket.
"""

import importlib.util
import inspect
import json
import math
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.reward.function import place_of
from compositionality.reward.judge import judge_with
from compositionality.tasks.registry import task_of
from compositionality.types import STOP, Reason, Verdict

RewardFunction = Callable[..., Any]


def main(fd: int, memory_mb: int, timeout_s: float, function: str | None = None) -> None:
    """Serve until the pool closes its end or dies; if the start fails, send the error instead of *ready*.

    ``memory_mb``: limit of address space, beyond its size after importing ``function``.
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


def _verdict(function: RewardFunction | None, timeout_s: float, *item: Any) -> tuple[Any, ...]:
    """Return one verdict; if the judge takes longer than ``timeout_s``, SIGALRM's default action ends this process.

    The time excludes imports. As in verl, a reward ``function`` also gets responses that were cut off by the limit of
    tokens.
    """
    data_source, response, ground_truth, finish_reason, extra_info = item
    judge: Callable[[str, str], Verdict]
    if function is None:
        task = task_of(data_source)
        judge = task.verdict
        with suppress(Exception):  # the judge itself will raise the import error
            _ = [*map(import_module, task.libraries)]
    else:
        judge, finish_reason = partial(call_function, function, data_source, extra_info), STOP
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    verdict = judge_with(judge, response, ground_truth, finish_reason)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return verdict.score, verdict.reason.value, verdict.answer, dict(verdict.metrics), verdict.error


# ---- a reward function of the user's own


def load_function(word: str) -> RewardFunction:
    """Import the function from its file (only in a process of the judge pool). UserError if that fails."""
    path, name = place_of(word)
    spec = importlib.util.spec_from_file_location("reward_function", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"reward.function={word}: cannot be imported ({type(error).__name__}: {error})") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise UserError(f"reward.function={word}: {path.name} has no function {name}; give FILE.py:NAME")
    return function  # type: ignore[no-any-return]


def call_function(function: RewardFunction, data_source: str, info: Any, response: str, truth: Any) -> Verdict:
    """Return the verdict of the function. Raises its exceptions, and ValueError for an invalid result."""
    returned = function(data_source=data_source, solution_str=response, ground_truth=truth, extra_info=info)
    if inspect.iscoroutine(returned):
        import asyncio  # slow to import

        returned = asyncio.run(returned)
    return verdict_of(returned)


def verdict_of(returned: Any) -> Verdict:
    """Convert a number or verl's dictionary to a verdict. ValueError for anything else."""
    fields = dict(returned) if isinstance(returned, Mapping) else {"score": returned}
    score = number(fields.pop("score", None))
    right = number(fields.pop("acc")) if "acc" in fields else score
    if score is None or right is None:
        raise ValueError(f"it returned {returned!r:.200}; give a finite number, or a dictionary with one as score")
    pred = fields.pop("pred", None)
    metrics = {str(name): value for name, field in fields.items() if (value := number(field)) is not None}
    reason = Reason.CORRECT if right >= 1 else Reason.WRONG
    return Verdict(score, reason, pred if isinstance(pred, str) else None, metrics)


def number(value: Any) -> float | None:
    """Return a finite number, a boolean, or a scalar of numpy or torch as a float; None for anything else."""
    value = value.item() if getattr(value, "shape", None) == () else value
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])
