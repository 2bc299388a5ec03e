"""A limit for work of a library that nobody can bound beforehand."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def processor_time(seconds: float, error: type[BaseException]) -> Iterator[None]:
    """Raise ``error`` after ``seconds`` of processor time, in the main thread; elsewhere nothing ends the work.

    So an answer that keeps a library busy is no right one. The alarm of the judging process, which makes it an error,
    stays.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise error(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
