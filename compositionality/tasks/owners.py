"""Splits and seeds that share no problem: what a problem is about names the one stream that may use it.

Half of all problems are for training, a sixth each for validation, test and pretraining; each of these is shared out
among the seeds modulo SEED_CLASSES.
"""

from collections.abc import Callable, Hashable
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

from compositionality.errors import UserError

if TYPE_CHECKING:
    from compositionality.tasks.draws import Draws

SHARES = ("train", "train", "train", "validation", "test", "pretrain")
SPLITS = tuple(dict.fromkeys(SHARES))
SEED_CLASSES = 4
ATTEMPTS = 3000
Drawn = TypeVar("Drawn")


def owner(content: Hashable) -> tuple[str, int]:
    """The split, and the seed modulo SEED_CLASSES, that may use problems about ``content`` (equal by its repr)."""
    word = int.from_bytes(blake2b(repr(content).encode(), digest_size=8).digest(), "big")
    share, seed = divmod(word % (len(SHARES) * SEED_CLASSES), SEED_CLASSES)
    return SHARES[share], seed


def draw_owned(
    draw: Callable[["Draws"], Drawn], content: Callable[[Drawn], Hashable], split: str, seed: int, name: str
) -> tuple[Drawn, "Draws"]:
    """The first thing drawn that the stream (split, seed) owns, and the draws for the rest of its problem.

    ``name`` is that of the draws: all but split and seed that the problem depends on. UserError for an unknown split,
    and where nothing drawn is owned.
    """
    from compositionality.tasks.draws import Draws  # numpy

    if split not in SPLITS:
        raise UserError(f"split={split}: no such split; known: {', '.join(SPLITS)}")
    draws = Draws(f"{name}/{split}/{seed}".encode())
    for _ in range(ATTEMPTS):
        drawn = draw(draws)
        if owner(content(drawn)) == (split, seed % SEED_CLASSES):
            return drawn, draws
    raise UserError(f"{split}/{seed}: too few different problems for these options; widen them")
