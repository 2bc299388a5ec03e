"""Which expressions may reach sympy: polynomials as sums of products, and antiderivatives of elementary functions.

Nothing is evaluated here. What is refused are names that sympy would call (``Integral`` answers any integral),
attributes, strings, and powers whose value would fill the memory.
"""

import re
from itertools import pairwise

FUNCTIONS = frozenset(
    ("exp", "log", "sqrt", "sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh")
)
LARGEST_POWER = 400  # product of the whole exponents of all parentheses
_TOKEN = re.compile(r"\s+|(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<name>[A-Za-z]+)|(?P<sign>\*\*|[-+*/()])|(?P<bad>.)", re.S)
_LONGEST_NUMBER = 15


def is_polynomial_text(text: str, variables: set[str]) -> bool:
    """Whether ``text`` is a sum of terms like ``12*x**3*y``: no parentheses, so that no product is left to multiply."""
    if not variables:
        return False
    power = rf"[{''.join(sorted(variables))}](?:\s*\*\*\s*[0-9]{{1,3}})?"
    powers = rf"{power}(?:\s*\*\s*{power})*"
    term = rf"(?:[0-9]{{1,{_LONGEST_NUMBER}}}(?:\s*\*\s*{powers})?|{powers})"
    return re.fullmatch(rf"(?:[+-]\s*)?{term}(?:\s*[+-]\s*{term})*", text) is not None


def is_antiderivative_text(text: str, variable: str) -> bool:
    """Whether ``text`` is built from numbers, the variable, C, E, pi, elementary functions and ``+ - * / **``."""
    tokens = _tokens(text)
    names = FUNCTIONS | {variable, "C", "E", "pi"}
    if tokens is None or any(token[0].isalpha() and token not in names for token in tokens):
        return False
    for token, following in pairwise([*tokens, ""]):
        if (token in FUNCTIONS) != (following == "(" and token[0].isalpha()):
            return False
        if token == ")" and following and (following == "(" or following[0].isalnum()):
            return False
    return _powers_are_small(tokens)


def _tokens(text: str) -> list[str] | None:
    found = []
    for match in _TOKEN.finditer(text):
        if match["bad"] or len(match["number"] or "") > _LONGEST_NUMBER:
            return None
        if not match[0].isspace():
            found.append(match[0])
    return found or None


def _powers_are_small(tokens: list[str]) -> bool:
    """No power of a number, no power of a power, and those of parentheses small whole ones or fractions."""
    product = 1
    for place, token in enumerate(tokens):
        if token != "**":
            continue
        base, after = tokens[place - 1] if place else "", " ".join(tokens[place + 1 : place + 7])
        plain = re.match(r"([0-9]{1,2})(?! \*\*)(?![0-9.])|\( -? ?([0-9]{1,2})(?: / [0-9]{1,2})? \)(?! \*\*)", after)
        if base == ")":
            if plain is None:
                return False
            product *= max(1, int(plain[1] or plain[2]))
        elif not base.isalpha() or (plain is None and not (after.startswith("(") or after[:1].isalpha())):
            return False
    return product <= LARGEST_POWER
