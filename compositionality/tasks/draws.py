"""Random draws that depend on nothing but their name: counter-based, the same on every machine.

``Draws`` is a stream of exact draws for one problem (blake2b); the functions on ``Words`` (the finaliser of splitmix64)
draw for many problems or tokens at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Chosen = TypeVar("Chosen")

Words = NDArray[np.uint64]
STRIDE = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

_BLOCK_BITS = 512
_SPARE_BITS = 64


@dataclass(slots=True)
class Draws:
    """An endless stream of uniform draws named by ``key`` (blake2b in counter mode).

    At least 64 spare bits stay behind every draw, so a draw below n is biased by less than n / 2**64.
    """

    key: bytes
    _counter: int = 0
    _value: int = 0
    _bits: int = field(default=0)

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1."""
        bits = n.bit_length()
        if self._bits < bits + _SPARE_BITS:
            self._refill(bits + _SPARE_BITS)
        self._bits -= bits
        self._value, drawn = divmod(self._value, n)
        return drawn

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def choice(self, items: Sequence[Chosen]) -> Chosen:
        """One of ``items``."""
        return items[self.below(len(items))]

    def shuffled(self, items: Iterable[Chosen]) -> list[Chosen]:
        """The items in a random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]

    def text(self, alphabet: str, length: int) -> str:
        """A string of ``length`` characters of ``alphabet``."""
        size = len(alphabet)
        value = self.below(size**length)
        chars = []
        for _ in range(length):
            value, drawn = divmod(value, size)
            chars.append(alphabet[drawn])
        return "".join(chars)

    def _refill(self, needed: int) -> None:
        """Drop what is left and take as many new blocks as hold ``needed`` bits."""
        blocks = range(self._counter, self._counter + 1 + needed // _BLOCK_BITS)
        fresh = b"".join([blake2b(self.key + counter.to_bytes(8, "big")).digest() for counter in blocks])
        self._counter = blocks.stop
        self._value = int.from_bytes(fresh, "big")
        self._bits = _BLOCK_BITS * len(blocks)


def key_word(name: str) -> np.uint64:
    """64 bits of a name."""
    return np.uint64(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little"))


def mix(words: Words) -> Words:
    """Scramble each word; a bijection (Steele, Lea and Flood, 2014)."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def chain(words: Words, others: NDArray[np.int64] | Words) -> Words:
    """Words that depend on ``words`` and ``others``, in this order."""
    return mix((words ^ others.astype(np.uint64)) + STRIDE)


def below(words: Words, n: int) -> NDArray[np.int64]:
    """Whole numbers from 0 to n - 1, for n up to 2**31; biased by less than n / 2**32."""
    return (((words >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).astype(np.int64)
