"""A random split by prompt that depends on the seed and the prompt alone, never on the order of the rows."""

import hashlib
from collections.abc import Collection

from compositionality.errors import UserError


def validation_keys(keys: Collection[str], count: int, seed: int) -> set[str]:
    """The ``count`` prompts (of the distinct ``keys``) that go to validation: those with the lowest seeded hash."""
    distinct = set(keys)
    if not 0 <= count < max(len(distinct), 1):
        raise UserError(
            f"val_prompts={count} leaves nothing to train on: {len(distinct)} prompts have a kept response; lower it"
        )
    return set(sorted(distinct, key=lambda key: _rank(key, seed))[:count])


def validation_count(n_prompts: int, val_prompts: int | None, val_fraction: float) -> int:
    """How many prompts to set aside: ``val_prompts``, or the given share (at least one if it is above zero)."""
    if val_prompts is not None:
        return val_prompts
    if not 0 <= val_fraction < 1:
        raise UserError(f"val_fraction={val_fraction}: give a share from 0 up to (not including) 1")
    return max(1, round(val_fraction * n_prompts)) if val_fraction else 0


def _rank(key: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}/{key}".encode()).hexdigest()
