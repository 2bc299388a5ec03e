"""Numbers. Plain ones are read exactly: 12, -3.5, 1,234, 3/4, \\frac{3}{4}, 1\\frac{1}{2}, 1.2 \\times 10^{5}."""

import math
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


# ---- numbers with roots and π as floats, to tell which of two is larger


APART = 1e-9  # least difference of two such numbers, as a share of the larger

_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_ROOT = re.compile(r"\\sqrt(?:\[([2-9])\])?\{")
_TIMES = re.compile(r"\\(?:cdot|times) ?|\*|(?=\\sqrt|\\pi|\()")
"""Between two factors; numbers side by side are none."""


def real_of(text: str) -> float | None:
    """Return the number that a text without blanks is, ``\\infty`` too; None for letters, two readings, too long."""
    if len(text) > DIGITS:
        return None
    try:
        if (plain := number_of(text)) is not None:
            return float(plain)
        value, rest = _sum(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return None if rest or math.isnan(value) else value


def is_above(high: str, low: str) -> bool:
    """Return whether a number is surely larger than another; False where that is not known."""
    exact, other = number_of(high), number_of(low)
    if exact is not None and other is not None:
        return exact > other
    above, below = real_of(high), real_of(low)
    if above is None or below is None or math.isinf(above) or math.isinf(below):
        return above is not None and below is not None and above > below
    return above - below > APART * max(1.0, abs(above), abs(below))


def _sum(text: str) -> tuple[float, str]:
    """Return the value of a sum, and the text after it; so below."""
    value, rest = 0.0, text if text[:1] in ("+", "-") else f"+{text}"
    while rest[:1] in ("+", "-"):
        term, after = _product(rest[1:])
        value, rest = value + (term if rest[0] == "+" else -term), after
    return value, rest


def _product(text: str) -> tuple[float, str]:
    value, rest = _factor(text)
    while times := _TIMES.match(rest):
        factor, rest = _factor(rest[times.end() :])
        value *= factor
    if rest[:1] == "/":  # of a quotient nothing may follow: 1/2\sqrt{3} has two readings
        divisor, rest = _factor(rest[1:])
        if rest and rest[0] not in "+-)}":
            raise ValueError
        value /= divisor
    return value, rest


def _factor(text: str) -> tuple[float, str]:
    if plain := _PLAIN.match(text):
        return float(plain[0]), text[plain.end() :]
    for name, constant in (("\\pi", math.pi), ("\\infty", math.inf)):
        if text.startswith(name):
            return constant, text.removeprefix(name).lstrip()
    if root := _ROOT.match(text):
        value, rest = _inside(text[root.end() :], "}")
        return math.pow(value, 1 / int(root[1] or 2)) if value >= 0 else math.sqrt(value), rest
    if text.startswith("\\frac{"):
        numerator, rest = _inside(text.removeprefix("\\frac{"), "}")
        denominator, rest = _inside(rest.removeprefix("{"), "}")
        return numerator / denominator, rest
    if text.startswith("("):
        return _inside(text[1:], ")")
    raise ValueError


def _inside(text: str, closed: str) -> tuple[float, str]:
    """Return the value of what stands in brackets up to ``closed``, and the text after that."""
    value, rest = _sum(text)
    if not rest.startswith(closed):
        raise ValueError
    return value, rest[1:]
