"""Ctrl-C within a checkpoint: torch makes an error of its own of a KeyboardInterrupt."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupt_afterwards() -> Iterator[None]:
    """Hold SIGINT back until the body is done, then raise KeyboardInterrupt; a second one stops the body at once.

    Without effect outside the main thread, and where SIGINT is handled in a way of its own.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    count = 0

    def hold(_number: int, _frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    except BaseException as error:
        if count > 1:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if count:
        raise KeyboardInterrupt
