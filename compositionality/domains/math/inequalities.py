"""Inequalities for one letter as intervals, and the words that join them."""

import re

from compositionality.domains.math.parts import split_parts

AND, OR = "∧", "∨"
"""Before an inequality, or a part of a formula, that is joined to the one before it; a comma stands before these."""
_PLAIN_LETTER = re.compile(r"(?<![a-zA-Z\\])[a-zA-Z]")
LESS = re.compile(r" ?(<|>|\\[lg]e(?:q(?:slant)?)?(?![a-zA-Z])) ?")


def intervals(text: str) -> str:
    """Return inequalities for one letter as an interval or a union, ``-2<x\\le7`` as ``(-2,7]``; else the text."""
    bounds = [_bounds(part.removeprefix(AND).removeprefix(OR)) for part in split_parts(text)]
    if None in bounds or len({letter for letter, _, _ in filter(None, bounds)}) > 1:
        return text
    sides = [(low, high) for _, low, high in filter(None, bounds)]
    if AND in text:  # of x>1 and x<3 each has one of the ends
        lows = [low for low, _ in sides if low != "(-\\infty"]
        highs = [high for _, high in sides if high != "\\infty)"]
        if len(sides) != 2 or len(lows) != 1 or len(highs) != 1 or OR in text:
            return text
        sides = [(lows[0], highs[0])]
    return "∪".join(map(",".join, sides))


def _bounds(text: str) -> tuple[str, str, str] | None:
    """Return the letter of an inequality, and the ends of its interval with their brackets."""
    sides = LESS.split(text)
    signs = {sign[:2] for sign in sides[1::2]}
    if signs <= {">", "\\g"}:
        sides.reverse()
    elif not signs <= {"<", "\\l"}:
        return None
    if len(sides) == 3:
        sides = ["-\\infty", "<", *sides] if sides[0].isalpha() else [*sides, "<", "\\infty"]
    if len(sides) != 5 or not re.fullmatch("[a-z]", sides[2]) or _PLAIN_LETTER.search(sides[0] + " " + sides[4]):
        return None
    low, first, letter, second, high = sides
    return letter, f"{'(' if first in '<>' else '['}{low}", f"{high}{')' if second in '<>' else ']'}"
