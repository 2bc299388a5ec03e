"""Judge one response: the task's judge, limits of length and time, failures of the judge itself."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from compositionality.errors import UserError
from compositionality.tasks.registry import task_of
from compositionality.tasks.task import row_info
from compositionality.types import FAILED, LENGTH, STOP, Reason, Verdict, storable

if TYPE_CHECKING:
    from compositionality.reward.pool import SharedJudge

_LOG = logging.getLogger(__name__)


def judge_response(
    data_source: str,
    response: str,
    ground_truth: Any,
    finish_reason: str = STOP,
    extra_info: Mapping[str, Any] | None = None,
    *,
    judge_seconds: float = 10.0,
) -> Verdict:
    """Return the verdict on ``response``; ``finish_reason`` "length" makes it OVERLONG, whatever the text says,
    and "failed" (no response) an ERROR.

    ``ground_truth`` and ``extra_info`` are those of a row, ours or from another library.
    A failing judge gives an ERROR verdict; only an unknown ``data_source`` raises (UserError). An untrusted judge runs
    in a separate process for at most ``judge_seconds``.
    """
    task = task_of(data_source)
    try:
        truth = task.row_truth(ground_truth, row_info(extra_info))
    except Exception as error:  # noqa: BLE001 - an invalid truth is a judge error
        reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        _LOG.warning("the judge failed: %s", reason)
        return Verdict(0.0, Reason.ERROR, error=reason)
    if task.trusted_judge or finish_reason in (LENGTH, FAILED):
        return judge_with(task.verdict, response, truth, finish_reason)
    from compositionality.reward.pool import JudgeInput

    return _separate_process(judge_seconds).judge(JudgeInput(data_source, response, truth, finish_reason))


@cache
def _separate_process(judge_seconds: float) -> "SharedJudge":
    from compositionality.reward.pool import SharedJudge

    return SharedJudge(1, judge_seconds)


def judge_with(
    judge: Callable[[str, str], Verdict], response: str, ground_truth: str, finish_reason: str = STOP
) -> Verdict:
    """Judge like ``judge_response``, with the given judge."""
    if finish_reason == LENGTH:
        return Verdict(0.0, Reason.OVERLONG)
    if finish_reason == FAILED:
        return Verdict(0.0, Reason.ERROR)
    try:
        verdict = judge(response, ground_truth)
        return verdict if verdict.answer is None else replace(verdict, answer=storable(verdict.answer))
    except Exception as error:  # noqa: BLE001 - an exception in a judge is a judge error, never a wrong answer (P5)
        reason = f"{type(error).__name__}: {error}"
        _LOG.warning("the judge failed: %s", reason)
        return Verdict(0.0, Reason.ERROR, error=reason)


def row_score(row: Mapping[str, Any], response: str) -> float:
    """Return 1.0 for a right response, else 0.0. RuntimeError, which ends the evaluation, if the judge failed."""
    truth = row["reward_model"]["ground_truth"]
    verdict = judge_response(row["data_source"], response, truth, extra_info=row.get("extra_info"))
    if verdict.reason is Reason.ERROR:
        raise RuntimeError(f"the judge of {row['data_source']} failed: {verdict.error}; the response is not wrong")
    return float(verdict.reason is Reason.CORRECT)


@contextmanager
def processor_time(seconds: float, error: type[BaseException]) -> Iterator[None]:
    """Raise ``error`` after ``seconds`` of processor time in the main thread; other threads have no limit.

    For calls of libraries whose time cannot be bounded beforehand: an answer that takes too long is not right. The
    alarm of the judging process, which gives an error, stays set. Time inside a nested limit does not count for the
    outer one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise error(f"more than {seconds:g} s of processor time")

    handler = signal.signal(signal.SIGPROF, stop)
    seconds_left, _ = signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        signal.setitimer(signal.ITIMER_PROF, seconds_left)
