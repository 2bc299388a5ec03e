"""Which stream an input string belongs to: a checksum that is read off the string itself.

Inputs with different checksums are different strings. Each (split, seed modulo 8) owns one checksum, so different
splits and neighbouring seeds share no input, hence no problem; any row can be checked.
"""

from zlib import crc32

from compositionality.errors import UserError
from compositionality.tasks.draws import Draws

SPLITS = ("train", "validation", "test", "pretrain")
SEED_CLASSES = 8
CHECKSUMS = len(SPLITS) * SEED_CLASSES


def checksum(text: str) -> int:
    """A number from 0 to 31; for a given start of the text, its last two characters set it."""
    return (crc32(text[:-2].encode()) + 5 * ord(text[-2]) + ord(text[-1])) % CHECKSUMS


def owned_checksum(split: str, seed: int) -> int:
    """The checksum of all inputs of the stream (split, seed)."""
    if split not in SPLITS:
        raise UserError(f"split={split}: no such split; known: {', '.join(SPLITS)}")
    return SPLITS.index(split) * SEED_CLASSES + seed % SEED_CLASSES


def owner(text: str) -> tuple[str, int]:
    """The split and the seed modulo 8 that may use ``text`` as an input."""
    split, seed = divmod(checksum(text), SEED_CLASSES)
    return SPLITS[split], seed


def last_pairs(alphabet: str) -> tuple[tuple[str, ...], ...]:
    """For each remainder, the pairs of characters that add it to the checksum."""
    pairs: list[list[str]] = [[] for _ in range(CHECKSUMS)]
    for first in alphabet:
        for second in alphabet:
            pairs[(5 * ord(first) + ord(second)) % CHECKSUMS].append(first + second)
    if not all(pairs):
        raise UserError(f"alphabet={alphabet!r} is too small to keep the splits apart; use at least 8 letters in a row")
    return tuple(tuple(group) for group in pairs)


def draw_input(
    draws: Draws, alphabet: str, lengths: tuple[int, int], pairs: tuple[tuple[str, ...], ...], owned: int
) -> str:
    """A random string with the checksum ``owned``: all but the last two characters are free."""
    free = draws.text(alphabet, draws.between(*lengths) - 2)
    return free + draws.choice(pairs[(owned - crc32(free.encode())) % CHECKSUMS])
