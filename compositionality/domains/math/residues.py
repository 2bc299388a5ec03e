"""Residue classes in one form: ``x\\equiv2\\;(\\text{mod }6)`` as ``x=2\\pmod{6}``."""

import re

from compositionality.domains.math.parts import LETTER, split_parts

CLASS = "\\pmod"

_NUMBER = rf"(?P<joint>[∧∨]?)(?:(?P<letter>{LETTER}) ?(?:\\equiv ?|=))?(?P<number>[+-]?\d{{1,15}})"
_LISTED = re.compile(_NUMBER)
_CLASS = re.compile(rf"{_NUMBER}(?P<open>\()?\\?[pb]?mod ?(?:\{{(?P<n>\d{{1,15}})\}}|(?P<m>\d{{1,15}}))(?(open)\))")
_FORM = re.compile(r"(-?\d+)\\pmod\{(\d+)\}")
_MULTIPLES = re.compile(
    rf"(?P<name>(?:{LETTER}=)?)(?:(?P<m>\d{{1,15}})(?P<k>[a-zA-Z])(?P<r>[+-]\d{{1,15}})?"
    r"|(?P<first>-?\d{1,15})\+(?P<n>\d{1,15})(?P<l>[a-zA-Z])),(?P<whole>[a-zA-Z])\\in\\mathbb\{Z\}"
)
"""A family of the numbers of a class: 6k+2, 2+6k, 6k."""


def spelled_classes(text: str) -> str:
    """Return residue classes in one form, the last of which may name the modulus of all; other texts as they are."""
    parts = split_parts(text)
    if not (last := _CLASS.fullmatch(parts[-1])):
        return text
    known = [_CLASS.fullmatch(part) or _LISTED.fullmatch(part) for part in parts]
    names = [part["letter"] or "" for part in known if part]
    listed = any(part and part.re is _LISTED for part in known)
    if len(names) < len(parts) or (listed and any(names[1:])):  # of x=1, y=2 (mod 3) it is not clear
        return text
    written = []
    for part in filter(None, known):
        letter = part["letter"] or (names[0] if listed else "")
        modulus = part if part.re is _CLASS else last
        named = f"{part['joint']}{letter}{'=' * bool(letter)}"
        written.append(f"{named}{int(part['number'])}{CLASS}{{{modulus['n'] or modulus['m']}}}")
    return ",".join(written)


def same_class(gold: str, answer: str) -> bool | None:
    """Return whether a class is the gold one, by its number or the least that is not negative; None if one is none."""
    right, given = _FORM.fullmatch(gold), _FORM.fullmatch(answer)
    if not right or not given:
        return None
    return right[2] == given[2] and int(given[1]) in (int(right[1]), int(right[1]) % max(1, int(right[2])))


def class_of(text: str) -> str:
    """Return the residue class that a family of numbers, as ``6k+2`` for whole k, is; other texts as they are."""
    family = _MULTIPLES.fullmatch(text)
    if not family or (family["k"] or family["l"]) != family["whole"] or family["name"][:-1] == family["whole"]:
        return text
    return f"{family['name']}{int(family['r'] or family['first'] or 0)}{CLASS}{{{family['m'] or family['n']}}}"
