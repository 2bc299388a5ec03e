"""Runs one command and leaves nothing behind: ``python -m compositionality.train.verl.keeper COMMAND…``.

Ray and vLLM start processes in sessions of their own. The keeper adopts every orphan among its descendants
(PR_SET_CHILD_SUBREAPER), is told when its parent dies, even by SIGKILL (PR_SET_PDEATHSIG), and ends them all.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 10.0


def main() -> int:
    """Run ``sys.argv[1:]``; the exit code is that of the command (128 + signal if a signal ended it)."""
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent or parent == 1:  # the parent died before we could ask to be told
        return 128 + signal.SIGTERM
    child = subprocess.Popen(sys.argv[1:], preexec_fn=_die_with_keeper)
    try:
        code = child.wait()
    finally:
        end_descendants()
    return code if code >= 0 else 128 - code


def descendants(root: int) -> list[int]:
    """Process ids of all living descendants of ``root``."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def end_descendants() -> None:
    """SIGTERM to every descendant, and SIGKILL to those that are still there after a grace period."""
    _signal_all(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while descendants(os.getpid()) and time.monotonic() < deadline:
        _reap()
        time.sleep(0.1)
    while descendants(os.getpid()):
        _signal_all(signal.SIGKILL)
        _reap()
        time.sleep(0.1)


def _signal_all(number: signal.Signals) -> None:
    for pid in descendants(os.getpid()):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_descendants()
    os._exit(128 + number)


def _die_with_keeper() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
