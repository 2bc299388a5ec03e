"""Ends a piece of work at each of its writes, as a kill does: nothing is written after it, nothing is cleared up."""

import os
import sys
from collections.abc import Callable, Iterator
from itertools import count

WRITES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate")
_left: list[int] = []  # writes until the kill, while one is to come


def _count(event: str, arguments: tuple[object, ...]) -> None:
    flags = arguments[2] if event == "open" and isinstance(arguments[2], int) else 0
    if _left and (event in WRITES or flags & (os.O_WRONLY | os.O_RDWR)):
        _left[0] -= 1
        if _left[0] < 0:
            raise KeyboardInterrupt


def killed_everywhere(work: Callable[[int], object]) -> Iterator[int]:
    """Yield after each kill of ``work(number)``: before its first write, its second …, until it comes to its end."""
    for number in count():
        _left[:] = [number]
        try:
            work(number)
            return
        except BaseException:  # torch makes an error of its own of a kill
            if _left[0] >= 0:
                raise
        finally:
            _left.clear()
        yield number


sys.addaudithook(_count)
