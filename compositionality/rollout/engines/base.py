"""What every engine takes and returns, so that the collector does not depend on which one is used."""

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
    """A model that completes chats. The result of a call depends on its arguments alone, not on earlier calls."""

    @property
    def parallel_calls(self) -> int:
        """Return how many calls of ``generate`` may run at the same time, each in a thread of its own."""
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
    """Return the calls' results, in order, ``concurrency`` threads at a time; an error cancels those not begun."""
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
