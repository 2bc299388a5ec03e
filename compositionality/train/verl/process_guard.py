"""Runs one command and leaves no process behind: ``python -m compositionality.train.verl.process_guard COMMAND…``.

Ray and vLLM start processes in sessions of their own. The guard adopts every orphan among its descendants
(PR_SET_CHILD_SUBREAPER), gets a signal when its parent dies, even by SIGKILL (PR_SET_PDEATHSIG), and ends them all.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import FrameType

import psutil

from compositionality.train.launch import adopt_orphans, die_with_parent

GRACE_SECONDS = 10.0


def main() -> int:
    """Run ``sys.argv[1:]``; the exit code is that of the command (128 + signal if a signal ended it)."""
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    adopt_orphans()
    die_with_parent(signal.SIGTERM)
    if os.getppid() != parent or parent == 1:  # the parent died before the line above
        return 128 + signal.SIGTERM
    child = subprocess.Popen(sys.argv[1:], preexec_fn=_die_with_guard)
    try:
        code = child.wait()
    finally:
        end_descendants()
    return code if code >= 0 else 128 - code


def descendants(root: int) -> list[psutil.Process]:
    """All living descendants of the process ``root``."""
    try:
        return [process for process in psutil.Process(root).children(recursive=True) if is_alive(process)]
    except psutil.NoSuchProcess:
        return []


def end_descendants() -> None:
    """SIGTERM to every descendant, and SIGKILL to those that are still alive after a grace period."""
    _signal_all(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while descendants(os.getpid()) and time.monotonic() < deadline:
        _reap()
        time.sleep(0.1)
    while descendants(os.getpid()):
        _signal_all(signal.SIGKILL)
        _reap()
        time.sleep(0.1)


def is_alive(process: psutil.Process) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE  # type: ignore[no-any-return]
    except psutil.NoSuchProcess:
        return False


def _signal_all(number: signal.Signals) -> None:
    for process in descendants(os.getpid()):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_descendants()
    os._exit(128 + number)


def _die_with_guard() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_parent()


if __name__ == "__main__":
    sys.exit(main())
