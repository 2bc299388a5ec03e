"""Seeds of completions and orders of rows as functions of a run's seed and of positions: the same on any machine."""

from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np


def request_seed(run_seed: int, problem: int, sample: int) -> int:
    """Return the 31-bit seed of a completion: a hash of run seed, problem row and sample; runs share no stream."""
    key = f"{run_seed}/{problem}/{sample}".encode()
    return int.from_bytes(blake2b(key, digest_size=4).digest(), "big") >> 1


@lru_cache(maxsize=4)
def epoch_order(rows: int, seed: int, epoch: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the order of ``rows`` rows in pass ``epoch``."""
    return np.random.default_rng([seed, epoch]).permutation(rows)


def row_at(position: int, rows: int, seed: int, *, shuffle: bool = True) -> int:
    """Return the index (of ``rows``) at ``position`` in an endless stream of passes, each in its own order."""
    epoch, offset = divmod(position, rows)
    return int(epoch_order(rows, seed, epoch)[offset]) if shuffle else offset
