"""Which stream a problem belongs to: a class that is read off its numbers and its target.

Each (split, seed modulo 4) owns its classes, so different splits and neighbouring seeds share no problem, and any row
can be checked. Half of all problems are for training, a sixth each for validation, test and pretraining.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from compositionality.errors import UserError
from compositionality.tasks.draws import Bits, combine

SHARES = ("train", "train", "train", "validation", "test", "pretrain")
SPLITS = tuple(dict.fromkeys(SHARES))
SEED_CLASSES = 4
CLASSES = len(SHARES) * SEED_CLASSES
Whole = NDArray[np.int64]


def numbers_bits(ordered: Whole) -> Bits:
    """A word for each multiset of numbers; shape (n, problems), in ascending order."""
    words = np.zeros(ordered.shape[1], np.uint64)
    for row in ordered:
        words = combine(words, row)
    return words


def class_of(words: Bits, targets: Whole) -> Whole:
    """The classes, 0 to 23, of problems with these numbers and targets."""
    return ((combine(words, targets) >> np.uint64(32)) % np.uint64(CLASSES)).astype(np.int64)


def owned_classes(split: str, seed: int) -> NDArray[np.bool_]:
    """Which classes the stream (split, seed) owns: 24 truth values."""
    if split not in SPLITS:
        raise UserError(f"split={split}: no such split; known: {', '.join(SPLITS)}")
    return np.array([share == split and own == seed % SEED_CLASSES for share in SHARES for own in range(SEED_CLASSES)])


def owner(numbers: Sequence[int], target: int) -> tuple[str, int]:
    """The split and the seed modulo 4 that may use a problem."""
    ordered = np.array(sorted(numbers), dtype=np.int64)[:, None]
    share, seed = divmod(int(class_of(numbers_bits(ordered), np.array([target]))[0]), SEED_CLASSES)
    return SHARES[share], seed
