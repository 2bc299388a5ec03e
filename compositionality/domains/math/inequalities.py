"""Inequalities for one letter, and what is left of all numbers, as intervals; the signs of the words between them."""

import re
from itertools import pairwise

from compositionality.domains.math.numbers import is_above, number_of
from compositionality.domains.math.parts import GREEK, LETTER, brackets, split_parts

EMPTY = "\\emptyset"

AND, OR = "∧", "∨"
"""Before an inequality, or a part of a formula, that is joined to the one before it; a comma stands before these."""
_PLAIN_LETTER = re.compile(r"(?<![a-zA-Z\\])[a-zA-Z]")
_BUILDER = re.compile(rf"(?:\\\{{)?({LETTER})(?:\\in\(-\\infty,\\infty\))?(?:\||\\mid ?|:)(.*?)(?:\\\}})?")
_LEFT = re.compile(rf"((?:{LETTER}\\in)?)\(-\\infty,\\infty\)(?:\\setminus ?|-)(.+)")
"""All numbers but some: what is left out."""
LESS = re.compile(r" ?(<|>|\\[lg]e(?:q(?:slant)?)?(?![a-zA-Z])) ?")


def intervals(text: str, family: str = "") -> tuple[str, str]:
    """Return the one letter of inequalities, and them as an interval or a union: ``-2<x\\le7`` as ``(-2,7]``.

    Of other texts no letter, and the text. In the bounds may be the letter of a ``family``, and no other.
    """
    builder = _BUILDER.fullmatch(text)
    bounds = [_bounds(part.lstrip(AND + OR), family) for part in split_parts(builder[2] if builder else text)]
    letters = {bound[0] if bound else "" for bound in bounds}
    if len(letters) > 1 or "" in letters or (builder and builder[1] not in letters):
        return "", text
    sides = [bound[1:] for bound in bounds if bound]
    lows = [low for low, _ in sides if low != "(-\\infty"]
    highs = [high for _, high in sides if high != "\\infty)"]
    if len(sides) == 2 and len(lows) == len(highs) == 1 and OR not in text:  # each of x>1, x<3 has one of the ends
        has_both = AND in text or (OR not in text and is_above(highs[0][:-1], lows[0][1:]))
        sides = [(lows[0], highs[0])] if has_both else sides
    if AND in text and len(sides) > 1:
        return "", text
    parts = [EMPTY if _is_empty(*side) else ",".join(side) for side in sides]
    return letters.pop(), "∪".join(parts)


def _is_empty(low: str, high: str) -> bool:
    """Return whether an interval of numbers is empty, as (3,1) and (1,1] are; False where that is not known."""
    below, above = low[1:], high[:-1]
    is_same = below == above or number_of(below) == number_of(above) is not None
    return is_above(below, above) or (is_same and (low[0], high[-1]) != ("[", "]"))


def _bounds(text: str, family: str) -> tuple[str, str, str] | None:
    """Return the letter of an inequality, and the ends of its interval with their brackets."""
    sides = LESS.split(text)
    signs = {sign[:2] for sign in sides[1::2]}
    if signs <= {">", "\\g"}:
        sides.reverse()
    elif not signs <= {"<", "\\l"}:
        return None
    if len(sides) == 3:
        is_first = re.fullmatch(LETTER, sides[0]) and not (sides[0][0] == "\\" and sides[2].isalpha())
        sides = ["-\\infty", "<", *sides] if is_first else [*sides, "<", "\\infty"]
    if len(sides) != 5 or not re.fullmatch(LETTER, sides[2]) or sides[2] == family:
        return None
    low, first, letter, second, high = sides
    if {*_PLAIN_LETTER.findall(f"{low} {high}")} - {family} or (letter[0] == "\\" and re.search(GREEK, low + high)):
        return None
    return letter, f"{'(' if first in '<>' else '['}{low}", f"{high}{')' if second in '<>' else ']'}"


def without_sets(text: str) -> str:
    """Return all numbers but intervals or single ones, ``\\mathbb{R}\\setminus[1,3)``, as a union of intervals.

    Other texts as they are, and those of which the order of the ends is not known.
    """
    if not (left := _LEFT.fullmatch(text)):
        return text
    union = brackets(left[2]) if "∪" in left[2] else None
    removed = union[2].split("∪") if union and union[0] == "(" else [left[2]]  # without brackets it is another set
    ends = list[tuple[str, str, str, str]]()
    for pair in map(brackets, removed):
        if pair and pair[0] == "\\{":
            ends += [("[", point, point, "]") for point in split_parts(pair[2])]
        elif pair and len(parts := split_parts(pair[2])) == 2 and is_above(parts[1], parts[0]):
            ends.append((pair[0], parts[0], parts[1].lstrip("+"), pair[1]))
        else:
            return text
    ends = sorted(ends, key=lambda end: -sum(is_above(other[1], end[1]) for other in ends))
    if any(not is_above(after[1], before[2]) for before, after in pairwise(ends)):
        return text
    kept, start = list[str](), "(-\\infty"
    for opened, low, high, closed in ends:
        if low != "-\\infty":
            kept.append(f"{start},{low}{')' if opened == '[' else ']'}")
        start = f"{'(' if closed == ']' else '['}{high}"
    kept += [f"{start},\\infty)"] if ends[-1][2] != "\\infty" else []
    return left[1] + "∪".join(kept) if kept else text
