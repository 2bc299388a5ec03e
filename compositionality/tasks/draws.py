"""Random draws that depend on nothing but their name, the same on every machine; splits and seeds that share nothing.

``Draws`` is a stream of exact draws for one problem (blake2b); the functions on ``Bits`` (the finaliser of splitmix64)
draw for many problems or tokens at once. A hash of a problem's content assigns it to one (split, seed modulo
SEED_CLASSES), so streams never overlap (``draw_owned``): half of all problems are for training, a sixth each for
validation, test and pretraining.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from compositionality.errors import UserError

Chosen = TypeVar("Chosen")
Drawn = TypeVar("Drawn")

SHARES = ("train", "train", "train", "validation", "test", "pretrain")
SPLITS = tuple(dict.fromkeys(SHARES))
SEED_CLASSES = 4
MAX_ATTEMPTS = 3000

Bits = NDArray[np.uint64]
STRIDE = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

_BLOCK_BITS = 512
_SPARE_BITS = 64
_RESOLUTION = 1 << 30


@dataclass(slots=True)
class Draws:
    """An endless stream of uniform draws named by ``key`` (blake2b in counter mode).

    At least 64 spare bits stay after every draw, so a draw below n is biased by less than n / 2**64.
    """

    key: bytes
    _counter: int = 0
    _value: int = 0
    _bits: int = 0

    def below(self, n: int) -> int:
        """Return a whole number from 0 to n - 1."""
        bits = n.bit_length()
        if self._bits < bits + _SPARE_BITS:
            blocks = range(self._counter, self._counter + 1 + (bits + _SPARE_BITS) // _BLOCK_BITS)
            fresh = b"".join([blake2b(self.key + counter.to_bytes(8, "big")).digest() for counter in blocks])
            self._counter, self._bits = blocks.stop, _BLOCK_BITS * len(blocks)
            self._value = int.from_bytes(fresh, "big")  # what was left is dropped
        self._bits -= bits
        self._value, drawn = divmod(self._value, n)
        return drawn

    def between(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def choice(self, items: Sequence[Chosen]) -> Chosen:
        return items[self.below(len(items))]

    def shuffled(self, items: Iterable[Chosen]) -> list[Chosen]:
        remaining = list(items)
        return [remaining.pop(self.below(len(remaining))) for _ in range(len(remaining))]

    def unit(self) -> float:
        """Return a number in (0, 1)."""
        return (self.below(_RESOLUTION) + 0.5) / _RESOLUTION

    def weighted(self, weights: Sequence[float]) -> int:
        """Return an index, with a chance in proportion to its weight."""
        shares = [max(1, round(weight * _RESOLUTION)) for weight in weights]
        ends = list(accumulate(shares))
        return bisect_right(ends, self.below(ends[-1]))

    def text(self, alphabet: str, length: int) -> str:
        size = len(alphabet)
        value = self.below(size**length)
        chars = []
        for _ in range(length):
            value, drawn = divmod(value, size)
            chars.append(alphabet[drawn])
        return "".join(chars)


def owner(content: Hashable) -> tuple[str, int]:
    """Return the split, and the seed modulo SEED_CLASSES, that may use problems about ``content`` (by its repr)."""
    word = int.from_bytes(blake2b(repr(content).encode(), digest_size=8).digest(), "big")
    share, seed = divmod(word % (len(SHARES) * SEED_CLASSES), SEED_CLASSES)
    return SHARES[share], seed


def draw_owned(
    draw: Callable[[Draws], Drawn], split: str, seed: int, name: str, content: Callable[[Drawn], Hashable] | None = None
) -> tuple[Drawn, Draws]:
    """Return the first thing drawn that the stream (split, seed) owns, and the draws for the rest of its problem.

    ``name`` is that of the draws: all but split and seed that the problem depends on; ``content`` what of the thing
    decides who owns it (all). UserError for an unknown split, and where nothing drawn is owned.
    """
    check_split(split, SPLITS)
    draws = Draws(f"{name}/{split}/{seed}".encode())
    for _ in range(MAX_ATTEMPTS):
        drawn = draw(draws)
        if owner(content(drawn) if content else drawn) == (split, seed % SEED_CLASSES):
            return drawn, draws
    raise UserError(f"{split}/{seed}: too few different problems for these options; widen them")


def check_split(split: str, splits: Iterable[str]) -> None:
    if split not in splits:
        raise UserError(f"split={split}: no such split; known: {', '.join(splits)}")


def key_bits(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little"))


def scramble(bits: Bits) -> Bits:
    """Scramble 64 bits each; a bijection (Steele, Lea and Flood, 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))


def combine(bits: Bits, others: NDArray[np.int64] | Bits) -> Bits:
    """Return bits that depend on ``bits`` and ``others``, in this order."""
    return scramble((bits ^ others.astype(np.uint64)) + STRIDE)


def below(bits: Bits, n: int) -> NDArray[np.int64]:
    """Return whole numbers from 0 to n - 1, for n up to 2**31; biased by less than n / 2**32."""
    return (((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).astype(np.int64)
