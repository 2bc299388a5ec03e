"""Many requests to a server at once, the answers in order."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from compositionality.rollout.engine import Tick

Answer = TypeVar("Answer")


def side_by_side(calls: Sequence[Callable[[], Answer]], at_once: int, tick: Tick) -> list[Answer]:
    """What each call returns, ``at_once`` of them at a time; the first error cancels those that have not begun."""
    with ThreadPoolExecutor(at_once) as threads:
        futures = [threads.submit(call) for call in calls]
        try:
            for done in as_completed(futures):
                done.result()
                tick(1)
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]
