"""Random words that depend on nothing but their name, for many problems at once: the finaliser of splitmix64."""

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


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
    return mix((words ^ others.astype(np.uint64)) + _STRIDE)


def below(words: Words, n: int) -> NDArray[np.int64]:
    """Whole numbers from 0 to n - 1, for n up to 2**31; biased by less than n / 2**32."""
    return (((words >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).astype(np.int64)
