r"""The grammar of arithmetic that models write: whole numbers, ``+ - * /`` and parentheses, nothing else.

    expression := term (("+" | "-") term)*
    term       := signed (("*" | "/") signed)*
    signed     := ["+" | "-"] factor
    factor     := number | "(" expression ")"
    number     := "0" | a digit from 1 to 9, then digits

No recursion and no evaluation by Python: postfix order, then exact arithmetic.
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
_WORD = re.compile(rf"[0-9]+|[^0-9{SPACE}]")
_NEGATE = "~"  # a minus in front of a value
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


def parse(text: str, operators: str) -> list[Token] | None:
    """Return an expression in postfix order, ``~`` for a minus in front of a value; its numbers are those of the text.

    None if the grammar refuses it, or it has another operator than ``operators``.
    """
    output: list[Token] = []
    waiting = ["("]
    depth, after_value, after_sign = 0, False, False
    for word in _WORD.findall(text):
        number = whole_number(word)
        is_sign = not after_value and not after_sign and word in ("+", "-")
        if (number is not None or word == "(") == after_value and not is_sign:
            return None
        if number is not None:
            output.append(number)
        elif word == "(":
            depth += 1
            waiting.append(word)
        elif word == ")":
            depth -= 1
            _release(waiting, output, 1)
            waiting.pop()
        elif word not in operators:
            return None
        elif after_value:
            _release(waiting, output, _STRENGTH[word])
            waiting.append(word)
        elif word == "-":
            waiting.append(_NEGATE)
        if not 0 <= depth <= MAX_DEPTH:
            return None
        after_value, after_sign = number is not None or word == ")", is_sign
    _release(waiting, output, 1)
    return output if after_value and depth == 0 else None


def _release(waiting: list[str], output: list[Token], strength: int) -> None:
    """Move waiting operators that bind at least as strongly to the output."""
    while _STRENGTH[waiting[-1]] >= strength:
        output.append(waiting.pop())


def value_of(postfix: Sequence[Token]) -> Exact | None:
    """Return the exact value; None if there is a division by zero."""
    values: list[Exact] = []
    for token in postfix:
        if isinstance(token, int):
            values.append(token)
            continue
        right = values.pop()
        value = -right if token == _NEGATE else apply(token, values.pop(), right)
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
"""Operations on whole numbers, by sign; division, which can leave them, is apart."""
