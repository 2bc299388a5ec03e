"""What every engine takes and gives, so that the collector does not care which one answers."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from compositionality.rollout.shards import Completion
from compositionality.tasks import Message

__all__ = ["Completion", "Engine", "Request", "SamplingOptions", "Tick", "no_tick", "request_seed"]

Tick = Callable[[int], None]
"""Told how many more answers are finished, while a call runs."""


def no_tick(_: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question to the model: a chat, and the seed of this one answer."""

    messages: tuple[Message, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How to draw: ``temperature`` 0 is greedy, ``top_k`` 0 and ``top_p`` 1 are off, ``max_tokens`` new tokens."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 1024


class Engine(Protocol):
    """A model that answers. One call is one shard: its answers depend on the call alone, not on earlier calls."""

    @property
    def parallel_calls(self) -> int:
        """How many calls of ``generate`` may run at the same time, each in a thread of its own."""
        ...

    def generate(self, requests: Sequence[Request], options: SamplingOptions, tick: Tick = ...) -> list[Completion]:
        """One completion per request, in order."""
        ...

    def close(self) -> None:
        """Give back processes and memory."""
        ...


def request_seed(run_seed: int, problem: int, sample: int) -> int:
    """The seed of one answer, 31 bits: a hash of run, problem row and sample, so that no two runs share a stream."""
    key = f"{run_seed}/{problem}/{sample}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=4).digest(), "big") >> 1
