"""The interface of engines, so that the collector works with any of them."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol, TypeVar

from compositionality.types import Completion, Message, SamplingOptions

Chat = Sequence[Message]
Tick = Callable[[int], None]
"""Called with the number of newly finished completions while ``generate`` runs."""
Item = TypeVar("Item")
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


def run_calls(work: Callable[[Item], Result], items: Sequence[Item], parallel: int) -> Iterator[tuple[Item, Result]]:
    """Do the work of every item, ``parallel`` at a time; yield (item, result) as they finish.

    An error cancels the waiting ones. One at a time is done in this thread, which vLLM has bound to its cores.
    """
    if parallel == 1:
        yield from ((item, work(item)) for item in items)
        return
    with ThreadPoolExecutor(parallel) as threads:
        running = {threads.submit(work, item): item for item in items}
        try:
            for future in as_completed(running):
                yield running.pop(future), future.result()
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


def run_concurrently(calls: Sequence[Callable[[], Result]], concurrency: int, tick: Tick = no_tick) -> list[Result]:
    """Run the calls in ``concurrency`` threads and return their results in order; an error cancels waiting calls."""
    results: dict[int, Result] = {}
    for place, result in run_calls(lambda place: calls[place](), range(len(calls)), concurrency):
        results[place] = result
        tick(1)
    return [results[place] for place in range(len(calls))]
