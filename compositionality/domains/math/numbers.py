"""Plain numbers, read exactly: 12, -3.5, 1,234, 3/4, \\frac{3}{4}, 1\\frac{1}{2}, 1.2 \\times 10^{5}."""

import re
from fractions import Fraction

DIGITS = 60
"""Longest number that is read, in characters."""
EXPONENT = 300
RELATIVE = Fraction(1, 10**6)
"""How far a decimal may be from the exact number, as a share of it."""

_WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_REAL = rf"(?:{_WHOLE}(?:\.\d*)?|\.\d+)"
_FRACTION = re.compile(rf"([+-]?)(?:(\d+))?\\frac\{{([+-]?{_WHOLE})\}}\{{({_WHOLE})\}}")
_RATIO = re.compile(rf"([+-]?{_REAL})/({_WHOLE})")
_DECIMAL = re.compile(rf"([+-]?{_REAL})(?:(?:\\times|\\cdot|\*)10\^\{{?([+-]?\d+)\}}?|[eE]([+-]?\d+))?")


def read_number(text: str) -> Fraction | None:
    """The number that ``text``, without blanks, is; None if it is no plain number, or too large to be read."""
    if len(text) > DIGITS or not text.isascii():
        return None
    if found := _FRACTION.fullmatch(text):
        sign, whole, above, below = found.groups()
        if whole and not above[0].isdigit():
            return None
        return _divided(above, below, -1 if sign == "-" else 1, int(whole or 0))
    if found := _RATIO.fullmatch(text):
        return _divided(found[1], found[2])
    found = _DECIMAL.fullmatch(text)
    if not found:
        return None
    power = int(found[2] or found[3] or 0)
    return Fraction(found[1].replace(",", "")) * Fraction(10) ** power if abs(power) <= EXPONENT else None


def same_number(gold: Fraction, answer: Fraction, exact: bool) -> bool:
    """Equal; unless ``exact`` also a decimal within RELATIVE of the gold one. There is no leniency for percents."""
    return gold == answer or (not exact and abs(gold - answer) <= RELATIVE * abs(gold))


def is_decimal(text: str) -> bool:
    """Whether a plain number is written with a point or an exponent, so may be rounded."""
    return bool(re.search(r"[.eE]|\\times|\\cdot", text))


def _divided(above: str, below: str, sign: int = 1, whole: int = 0) -> Fraction | None:
    divisor = Fraction(below.replace(",", ""))
    return sign * (whole + Fraction(above.replace(",", "")) / divisor) if divisor else None
