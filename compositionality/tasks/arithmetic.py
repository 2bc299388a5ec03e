r"""The grammar of arithmetic that models write: whole numbers, ``+ - * /`` and parentheses, nothing else.

    expression := term (("+" | "-") term)*
    term       := signed (("*" | "/") signed)*
    signed     := ["+" | "-"] factor
    factor     := number | "(" expression ")"
    number     := "0" | a digit from 1 to 9, then digits

No recursion and no evaluation by Python: tokens, then postfix order, then exact arithmetic.
"""

import operator
import re
from collections.abc import Callable, Sequence
from fractions import Fraction

MAX_LENGTH = 4096
MAX_DEPTH = 64
MAX_DIGITS = 15
SPACE = " \t\r\n"

Exact = int | Fraction
Token = int | str

_DIGITS = frozenset("0123456789")
_SYMBOLS = frozenset("+-*/()")
_WORD = re.compile(rf"[0-9]+|[^0-9{SPACE}]")
_NEGATE = "~"  # a minus in front of a value, while it waits: it becomes 0 - …
_STRENGTH = {"(": 0, "+": 1, "-": 1, "*": 2, "/": 2, _NEGATE: 3}
_HARMLESS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "÷": "/", "−": "-"})
_HARMLESS_LATEX = {r"\times": "*", r"\cdot": "*", r"\div": "/"}


def plain_signs(text: str) -> str:
    r"""Return ``text`` with × · ⋅ ÷ − \times \cdot \div as the ASCII signs that they stand for."""
    if "\\" in text:
        for command, sign in _HARMLESS_LATEX.items():
            text = text.replace(command, sign)
    return text if text.isascii() else text.translate(_HARMLESS)


def whole_number(text: str) -> int | None:
    """Return the number that ``text`` writes in plain digits; None for anything else, leading zeros, over 15 digits."""
    if not text or len(text) > MAX_DIGITS or not _DIGITS.issuperset(text):
        return None
    return None if text[0] == "0" and len(text) > 1 else int(text)


def tokenize(text: str) -> list[Token] | None:
    """Return numbers and signs of ``text``, every character accounted for; None if it holds anything else."""
    tokens: list[Token] = []
    for word in _WORD.findall(text):
        token = whole_number(word) if word[0] in _DIGITS else word
        if token is None or not (isinstance(token, int) or token in _SYMBOLS):
            return None
        tokens.append(token)
    return tokens


def is_legal(tokens: Sequence[Token], operators: str) -> bool:
    """Return whether the grammar takes the tokens and all their operators are allowed."""
    depth, after_value, signed = 0, False, False
    for token in tokens:
        starts_value = isinstance(token, int) or token == "("
        is_sign = not after_value and not signed and token in ("+", "-")
        if starts_value == after_value and not is_sign:
            return False
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
        elif isinstance(token, str) and token not in operators:
            return False
        if not 0 <= depth <= MAX_DEPTH:
            return False
        after_value, signed = isinstance(token, int) or token == ")", is_sign
    return after_value and depth == 0


def to_postfix(tokens: Sequence[Token]) -> list[Token]:
    """Return legal tokens in postfix order; a minus in front of a value becomes ``0 - …``, a plus there goes."""
    output: list[Token] = []
    waiting = ["("]
    after_value = False
    for token in tokens:
        if isinstance(token, int):
            output.append(token)
        elif token == "(":
            waiting.append(token)
        elif token == ")":
            _release(waiting, output, 1)
            waiting.pop()
        elif after_value:
            _release(waiting, output, _STRENGTH[token])
            waiting.append(token)
        elif token == "-":
            output.append(0)
            waiting.append(_NEGATE)
        after_value = isinstance(token, int) or token == ")"
    _release(waiting, output, 1)
    return output


def _release(waiting: list[str], output: list[Token], strength: int) -> None:
    """Move waiting operators that bind at least as strongly to the output."""
    while _STRENGTH[waiting[-1]] >= strength:
        sign = waiting.pop()
        output.append("-" if sign == _NEGATE else sign)


def value_of(postfix: Sequence[Token]) -> Exact | None:
    """Return the exact value; None if there is a division by zero."""
    values: list[Exact] = []
    for token in postfix:
        if isinstance(token, int):
            values.append(token)
            continue
        right = values.pop()
        value = apply(token, values.pop(), right)
        if value is None:
            return None
        values.append(value)
    return values[0]


def apply(sign: str, left: Exact, right: Exact) -> Exact | None:
    """Return the result of one exact operation; None if it divides by zero."""
    if sign == "/":
        return Fraction(left, right) if right else None
    return WHOLE[sign](left, right)


WHOLE: dict[str, Callable[[Exact, Exact], Exact]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
"""What the signs do but division, which leaves the whole numbers."""
