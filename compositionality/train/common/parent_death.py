"""Linux's prctl: be killed when the parent dies; adopt orphaned descendants."""

import ctypes
import os
import signal
import sys

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Get the signal ``number`` when the parent dies: a killed launcher must not leave processes that hold locks."""
    _prctl(_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
