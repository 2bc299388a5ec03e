"""Starts a real vLLM server and waits until it answers."""

import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def serving(command: Sequence[str], port: int, **settings: Any) -> Iterator[str]:
    """The address of a server, once it answers."""
    process, url, end = subprocess.Popen(command, **settings), f"http://127.0.0.1:{port}", time.monotonic() + 900
    try:
        while not is_up(f"{url}/health"):
            assert process.poll() is None, "the server does not start"
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        process.wait(300)


def is_up(url: str) -> bool:
    with suppress(OSError):  # a busy server may also answer too late
        urllib.request.urlopen(url, timeout=10)
        return True
    return False
