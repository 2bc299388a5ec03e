"""Numbers with roots and π as floats, to tell which of two is larger; nothing else is read."""

import math
import re

from compositionality.domains.math.numbers import DIGITS, number_of

APART = 1e-9  # of two such numbers that are told apart, at least, as a share of the larger one

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
