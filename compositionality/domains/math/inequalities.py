"""Inequalities for one letter as intervals, and the signs of the words that join them."""

import re

from compositionality.domains.math.numbers import number_of
from compositionality.domains.math.parts import split_parts

EMPTY = "\\emptyset"

AND, OR = "∧", "∨"
"""Before an inequality, or a part of a formula, that is joined to the one before it; a comma stands before these."""
_PLAIN_LETTER = re.compile(r"(?<![a-zA-Z\\])[a-zA-Z]")
_BUILDER = re.compile(r"(?:\\\{)?([a-z])(?:\\in\(-\\infty,\\infty\))?(?:\||\\mid ?|:)(.*?)(?:\\\})?")
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
        has_both = AND in text or (OR not in text and _is_above(highs[0][:-1], lows[0][1:]))
        sides = [(lows[0], highs[0])] if has_both else sides
    if AND in text and len(sides) > 1:
        return "", text
    parts = [EMPTY if _is_empty(*side) else ",".join(side) for side in sides]
    return letters.pop(), "∪".join(parts)


def _is_above(high: str, low: str) -> bool:
    above, below = number_of(high), number_of(low)
    return above is not None and below is not None and above > below


def _is_empty(low: str, high: str) -> bool:
    """Return whether an interval of plain numbers is empty, as (3,1) and (1,1] are; with letters or roots: False."""
    is_point = low[0] == "[" and high[-1] == "]"
    return _is_above(low[1:], high[:-1]) or (not is_point and number_of(low[1:]) == number_of(high[:-1]) is not None)


def _bounds(text: str, family: str) -> tuple[str, str, str] | None:
    """Return the letter of an inequality, and the ends of its interval with their brackets."""
    sides = LESS.split(text)
    signs = {sign[:2] for sign in sides[1::2]}
    if signs <= {">", "\\g"}:
        sides.reverse()
    elif not signs <= {"<", "\\l"}:
        return None
    if len(sides) == 3:
        sides = ["-\\infty", "<", *sides] if sides[0].isalpha() else [*sides, "<", "\\infty"]
    if len(sides) != 5 or not re.fullmatch("[a-z]", sides[2]) or sides[2] == family:
        return None
    low, first, letter, second, high = sides
    if {*_PLAIN_LETTER.findall(f"{low} {high}")} - {family}:
        return None
    return letter, f"{'(' if first in '<>' else '['}{low}", f"{high}{')' if second in '<>' else ']'}"
