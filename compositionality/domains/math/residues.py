"""Families of whole numbers: residue classes, ``x\\equiv2\\;(\\text{mod }6)``, and those of a letter, 2k for k in Z."""

import re
from collections.abc import Sequence
from math import gcd, lcm
from typing import NamedTuple

from compositionality.domains.math.expressions import letters_in
from compositionality.domains.math.inequalities import AND, OR
from compositionality.domains.math.parts import LETTER, names, split_parts
from compositionality.tasks.answers import depths

# ---- residue classes in one form, ``x=2\\pmod{6}``, and as sets of numbers

CLASS = "\\pmod"
LARGEST = 10_000  # residues of a union, modulo the least common multiple of its moduli

_NUMBER = rf"(?P<joint>[{AND}{OR}]?)(?:(?P<letter>{LETTER}) ?(?:\\equiv ?|=))?(?P<number>[+-]?\d{{1,15}})"
_LISTED = re.compile(_NUMBER)
_CLASS = re.compile(rf"{_NUMBER}(?P<open>\()?\\?[pb]?mod ?(?:\{{(?P<n>\d{{1,15}})\}}|(?P<m>\d{{1,15}}))(?(open)\))")
_MULTIPLES = re.compile(
    rf"(?P<joint>[{AND}{OR}]?)(?P<name>(?:{LETTER}=)?)(?:(?P<m>\d{{1,15}})(?P<k>[a-zA-Z])(?P<r>[+-]\d{{1,15}})?"
    r"|(?P<first>-?\d{1,15})\+(?P<n>\d{1,15})(?P<l>[a-zA-Z]))"
)
"""The numbers of a class: 6k+2, 2+6k, 6k."""
_WHOLE = re.compile(r"(.+),([a-zA-Z])\\in\\mathbb\{Z\}")


class Residues(NamedTuple):
    """Classes (number, modulus) of one letter, perhaps none: all of them hold (a system), or any."""

    letter: str
    classes: tuple[tuple[int, int], ...]
    is_system: bool


def spelled_classes(text: str) -> str:
    """Return residue classes in one form, the last of which may name the modulus of all; other texts as they are."""
    parts = split_parts(text)
    if not (last := _CLASS.fullmatch(parts[-1])):
        return text
    matches = [_CLASS.fullmatch(part) or _LISTED.fullmatch(part) for part in parts]
    names = [part["letter"] or "" for part in matches if part]
    listed = any(part and part.re is _LISTED for part in matches)
    if len(names) < len(parts) or (listed and any(names[1:])):  # of x=1, y=2 (mod 3) it is not clear
        return text
    written = []
    for part in filter(None, matches):
        letter = part["letter"] or (names[0] if listed else "")
        modulus = part if part.re is _CLASS else last
        joint = "" if listed else part["joint"]  # 1 and 5 (mod 6) are two numbers, no system
        named = f"{joint}{letter}{'=' * bool(letter)}"
        written.append(f"{named}{int(part['number'])}{CLASS}{{{modulus['n'] or modulus['m']}}}")
    return ",".join(written)


def classes_of(text: str) -> str:
    """Return the residue classes that families of numbers, as ``6k+1,6k-1`` for whole k, are; other texts as they are.

    Only those of one letter, which is not the letter of the numbers.
    """
    if not (whole := _WHOLE.fullmatch(text)):
        return text
    written = []
    for part in split_parts(whole[1]):
        family = _MULTIPLES.fullmatch(part)
        if not family or (family["k"] or family["l"]) != whole[2] or family["name"][:-1] == whole[2]:
            return text
        number, modulus = int(family["r"] or family["first"] or 0), family["m"] or family["n"]
        written.append(f"{family['joint']}{family['name']}{number}{CLASS}{{{modulus}}}")
    return ",".join(written)


def same_residues(gold: str, answer: str) -> bool | None:
    """Return whether two texts in the form of ``spelled_classes`` are the same set of whole numbers; None if one is
    no such text.

    The answer is solved: of each class it has the number of the gold answer, or one that is not negative and below the
    modulus, or the one next to 0 (-1 for 5 modulo 6); and it is a system only where the gold answer is one.
    """
    right, answered = _read(gold), _read(answer)
    if right is None or answered is None:
        return None
    if answered.letter not in ("", right.letter) and right.letter:
        return False
    if right.is_system and _met(right.classes) is None:
        right = right._replace(is_system=False)  # a gold answer has numbers
    if answered.is_system and not right.is_system:
        return False
    if any(not -modulus <= 2 * number < 2 * modulus for number, modulus in {*answered.classes} - {*right.classes}):
        return False
    numbers, others = _numbers(right), _numbers(answered)
    return None if numbers is None or others is None else numbers == others


def _read(text: str) -> Residues | None:
    """Return the classes of a text. Commas join a system where the moduli differ and a number is in all classes."""
    candidates = [_CLASS.fullmatch(part) for part in split_parts(text)]
    matches = [match for match in candidates if match]
    letters = {match["letter"] or "" for match in matches} - {""}
    joints = {match["joint"] for match in matches[1:]} - {""}
    classes = tuple((int(match["number"]), int(match["n"] or match["m"])) for match in matches)
    moduli = {modulus for _, modulus in classes}
    if not classes or len(matches) < len(candidates) or len(letters) > 1 or len(joints) > 1 or 0 in moduli:
        return None
    is_system = AND in joints or (not joints and len(moduli) > 1 and _met(classes) is not None)
    return Residues("".join(letters), classes, is_system)


def _numbers(residues: Residues) -> tuple[int, frozenset[int]] | None:
    """Return the least modulus and the residues of a union or a system; None for more than LARGEST."""
    classes = residues.classes
    if residues.is_system:
        met = _met(classes)
        classes = (met,) if met else ()
    modulus = lcm(*(modulus for _, modulus in classes))
    if sum(modulus // own for _, own in classes) > LARGEST:
        return None
    numbers = frozenset(one for number, own in classes for one in range(number % own, modulus, own))
    for factor in range(2, len(numbers) + 1):
        while modulus % factor == len(numbers) % factor == 0:
            period = modulus // factor
            if any((number + period) % modulus not in numbers for number in numbers):
                break
            modulus, numbers = period, frozenset(number % period for number in numbers)
    return modulus, numbers


def _met(classes: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the class of the numbers that are in all of these; None if there are none."""
    number, modulus = 0, 1
    for other, its_modulus in classes:
        common = gcd(modulus, its_modulus)
        if (other - number) % common:
            return None
        rest = its_modulus // common
        number += modulus * ((other - number) // common * pow(modulus // common, -1, rest) % rest)
        modulus *= rest
    return number, modulus


# ---- answers with a letter for each whole number: 2k for k in Z, \{2k : k in Z\}, 2n for all integers n


INTEGERS = "\\mathbb{Z}"
_INTEGERS = re.compile(
    r"(.*[^\s,(]) ?(?:, ?\(?|\(| (?=where|for|with|\())(?:(?:where|for|with) )?(?:(?:all|any|some|every|\\forall) )?"
    r"(?:integers? ([a-zA-Z])|([a-zA-Z]) (?:(?:is|are) )?(?:(?:an|any) )?integers?"
    r"|([a-zA-Z]) ?\\in ?(\\mathbb\{[NZ]\}|Z))\)?"
)
"""A family and the words that say what its letter stands for; its text is without styles and with single blanks."""
_BUILT = re.compile(
    r"(?:([a-z])\\in)?\\\{(?:([a-z])(?:\||\\mid ?|:)(?=\2=))?((?:(?!\\\}).)+?)"
    r"(?:,|\||\\mid ?|:)([a-zA-Z])(\\in\\mathbb\{[NZ]\})\\\}"
)
"""A family between the braces of a set, perhaps after the letter of its numbers."""
_LETTERS_SET = re.compile(r",[a-zA-Z]\\in\\mathbb\{[NZ]\}$")
_FAMILY = re.compile(r"(.+),([a-zA-Z])\\in(\\mathbb\{[NZ]\})")


def spelled_family(text: str) -> str:
    """Return a text without styles that is a family in words, ``2k for all integers k``, with its letter's set."""
    family = _INTEGERS.fullmatch(" ".join(text.split()))
    if not family or depths(family[1])[-1]:
        return ""
    body, *letters, numbers = family.groups()
    return f"{body}, {''.join(filter(None, letters))}\\in {INTEGERS if numbers in (None, 'Z') else numbers}"


def are_solutions(text: str) -> bool:
    """Return whether all parts of a text are values of one letter: ``x=1 \\lor x=2`` is a list of two."""
    letters = {name[:1] for name in names(split_parts(_LETTERS_SET.sub("", text.replace(OR, ""))))}
    return len(letters) == 1 and "" not in letters


def unbuilt(text: str) -> str:
    """Return a family without the braces of a set around it; one for its own letter, as in k=2k, with that."""
    built = _BUILT.fullmatch(text)
    if not built:
        return text
    own = f"{built[4]}=" if built[1] == built[4] else ""
    return f"{own}{built[3]},{built[4]}{built[5]}"


def of_one_family(gold: str, answer: str) -> tuple[str, str, str]:
    """Return two families without their letters' set, both in the gold one's letter, and that.

    Other texts as they are, but no text for the answer k=2k, which is 0.
    """
    family, answers = (_FAMILY.fullmatch(unbuilt(text)) for text in (gold, answer))
    if not family or not answers or family[3] != answers[3]:
        return gold, answer, ""
    letter, old = family[2], answers[2]
    if gold != answer and any(one[1].startswith((f"{one[2]}=", f"{one[2]}\\in")) for one in (family, answers)):
        return gold, "", ""
    renamed = re.sub(rf"(?<![\\a-zA-Z]){old}(?![a-zA-Z])", letter, answers[1])
    if letter != old and (letter in letters_in(answers[1]) or old in letters_in(renamed)):
        return gold, answer, ""
    return family[1], renamed, letter
