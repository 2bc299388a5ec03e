"""Plain numbers, read exactly: 12, -3.5, 1,234, 3/4, \\frac{3}{4}, 1\\frac{1}{2}, 1.2 \\times 10^{5}."""

import re
from fractions import Fraction

DIGITS, EXPONENT = 60, 300  # longest number that is read, in characters, and its largest power of 10
RELATIVE = Fraction(1, 10**6)  # how far a decimal may be from the exact number, as a share of it

_WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_REAL = rf"(?:{_WHOLE}(?:\.\d*)?|\.\d+)"
_FRACTION = re.compile(rf"([+-]?)(?:(\d+))?\\frac\{{([+-]?{_WHOLE})\}}\{{([+-]?{_WHOLE})\}}")
_RATIO = re.compile(rf"([+-]?{_REAL})/({_WHOLE})")
_DECIMAL = re.compile(rf"([+-]?{_REAL})(?:(?:\\times|\\cdot|\*)10\^\{{?([+-]?\d+)\}}?|[eE]([+-]?\d+))?")
_REPEATING = re.compile(r"([+-]?\d+)\.(\d*)\\overline\{(\d+)\}")
_POWER_OF_TEN = re.compile(r"10\^(?:\{([+-]?\d{1,3})\}|(\d))")


def number_of(text: str) -> Fraction | None:
    """Return the number that ``text``, without blanks, is; None if it is no plain number, or too large to be read."""
    if len(text) > DIGITS or not text.isascii():
        return None
    if fraction := _FRACTION.fullmatch(text):
        sign, whole, numerator, denominator = fraction.groups()
        if whole and not numerator[0].isdigit():
            return None
        part = _divided(numerator, denominator)
        return None if part is None else (-1 if sign == "-" else 1) * (int(whole or 0) + part)
    if ratio := _RATIO.fullmatch(text):
        return _divided(ratio[1], ratio[2])
    if repeating := _REPEATING.fullmatch(text):
        start, digits, period = repeating.groups()
        return Fraction(int(start + digits + period) - int(start + digits), 10 ** len(digits) * (10 ** len(period) - 1))
    if ten := _POWER_OF_TEN.fullmatch(text):
        return Fraction(10) ** int(ten[1] or ten[2])
    decimal = _DECIMAL.fullmatch(text)
    power = int(decimal[2] or decimal[3] or 0) if decimal else 0
    if decimal is None or abs(power) > EXPONENT:
        return None
    return Fraction(decimal[1].replace(",", "")) * Fraction(10) ** power


def _divided(numerator: str, denominator: str) -> Fraction | None:
    divisor = Fraction(denominator.replace(",", ""))
    return Fraction(numerator.replace(",", "")) / divisor if divisor else None
