"""Replicates of a study: (seed, split of the functions)."""

from typing import NamedTuple

from compositionality.errors import UserError

VARIABLE = "REPLICATES"
"""Holds the replicates of a study as SEED:SPLIT words."""


class Replicate(NamedTuple):
    """One independent repetition, or (seed) what its splits share. Split 0 is the paper's."""

    seed: int
    split: int = 0

    @property
    def name(self) -> str:
        """``seed20-split61``: the end of its folders, and its name in tables."""
        return f"seed{self.seed}" + (f"-split{self.split}" if self.split else "")


def read_replicates(words: str) -> list[Replicate]:
    """From ``20:61 20:62``. UserError for what is none."""
    try:
        return [Replicate(*map(int, word.split(":"))) for word in words.split()]
    except (ValueError, TypeError) as error:
        raise UserError(f"{VARIABLE}={words}: words SEED:SPLIT are needed") from error
