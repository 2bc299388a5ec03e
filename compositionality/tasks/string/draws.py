"""Random draws that depend on nothing but their name: counter-based, the same on every machine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeVar

Item = TypeVar("Item")

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

    def choice(self, items: Sequence[Item]) -> Item:
        """One of ``items``."""
        return items[self.below(len(items))]

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
