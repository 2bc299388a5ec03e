"""The interface of engines, so that the collector works with any of them."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol, TypeVar

from compositionality.types import Completion, Message, SamplingOptions

Chat = Sequence[Message]
Tick = Callable[[int], None]
"""Called with the number of newly finished completions while ``generate`` runs."""
Result = TypeVar("Result")


def no_tick(_: int) -> None:
    """Report no progress."""


class Engine(Protocol):
    """A model that completes chats. The result of a call depends only on its arguments, not on earlier calls."""

    @property
    def parallel_calls(self) -> int:
        """Number of calls of ``generate`` that may run at the same time, each in its own thread."""
        ...

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Tick = ...
    ) -> list[Completion]:
        """Sample one completion per prompt and seed, in order."""
        ...

    def close(self) -> None:
        """Release processes and memory."""
        ...


def run_concurrently(calls: Sequence[Callable[[], Result]], concurrency: int, tick: Tick = no_tick) -> list[Result]:
    """Run the calls in ``concurrency`` threads and return their results in order; an error cancels waiting calls."""
    with ThreadPoolExecutor(concurrency) as threads:
        futures = [threads.submit(call) for call in calls]
        try:
            for done in as_completed(futures):
                done.result()
                tick(1)
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]
