"""What a composition does, on a fixed set of strings: two with equal fingerprints are the same skill."""

from collections.abc import Callable
from hashlib import blake2b

PROBES = (
    "abcdefghij",
    "hello",
    "Queue7",
    "aabbccddee",
    "bookkeeper",
    "zyxwvu",
    "A1b2C3d4",
    "racecar",
    "e",
    "xq",
    "«k»-«m»",
    "mississippi9",
    "GHIJklmno",
    "tt_uu|v",
    "oiuae3",
    "dhbfgcjdface",
)


def fingerprint(function: Callable[[str], str]) -> str:
    """A digest of the results on the probes."""
    results = "\x00".join([function(probe) for probe in PROBES])
    return blake2b(results.encode(), digest_size=16).hexdigest()
