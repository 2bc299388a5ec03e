"""Expressions compared by math-verify (Kydlíček), which runs sympy on what a model wrote.

Only in a process of the judge pool, and only on expressions whose size bounds the work. What math-verify would read as
another number is written in another way first.
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from math import isnan
from typing import Any

from compositionality.domains.math.expressions import SUBSCRIPTS, is_expression, letters_in, with_letters_apart
from compositionality.domains.math.numbers import RELATIVE
from compositionality.errors import UserError
from compositionality.reward.judge import processor_time

CONSTANTS = frozenset(("e", "i", "pi"))  # letters that an answer may have though the gold one has not
SYMBOLS = 200  # longest expression that is compared by symbols, in characters
KNOWN = "\\frac{x+1}{2}"  # what math-verify is asked first, to find out whether it works here
PARSERS = ("math-verify", "latex2sympy2-extended", "antlr4-python3-runtime")
IMPORT_S = 60.0  # to load math-verify, which its processes have loaded already

_DIGITS_BEHIND = re.compile(r"-?\d{1,15}\.\d{1,12}")
_ROOT = re.compile(r"\^\{(-?)\\frac\{(\d\d?)\}\{(\d\d?)\}\}")  # a power that is a fraction
_WORD = re.compile(r"[a-z]{3,}")
"""Letters in a row are a triangle or a word: no product, so their order counts."""


def same_by_symbols(gold: str, answer: str) -> bool:
    """Compare as sympy sees both; never what would keep it busy, or what is no mathematics."""
    gold, answer = (_ROOT.sub(r"^{\1\2/\3}", text) for text in (gold, answer))
    if max(len(gold), len(answer)) > SYMBOLS or not all(map(is_expression, (gold, answer))) or _WORD.fullmatch(gold):
        return False
    if "\\infty" in gold + answer:  # 2\\infty is none to sympy
        return gold.lstrip("+") == answer.lstrip("+")
    if (
        sorted(SUBSCRIPTS.findall(gold)) != sorted(SUBSCRIPTS.findall(answer))
        or not letters_in(answer) <= letters_in(gold) | CONSTANTS
    ):
        return False
    return _compared(_verified, *with_letters_apart(gold, answer))


def _compared(compare: Callable[..., bool], *texts: str) -> bool:
    """Return what ``compare`` says of texts to be read as expressions; no where sympy fails."""
    with processor_time(IMPORT_S, TooLongError):  # no time of the answer's
        _check_symbols()
    try:
        return compare(*texts)
    except Exception:  # noqa: BLE001 - whatever sympy dies of, it has found no equality
        return False


def rounds_to(text: str, decimal: str) -> bool:
    """Return whether the expression ``text`` is a number that rounds to ``decimal``, as in ``2\\sqrt3\\approx3.46``."""
    if not _DIGITS_BEHIND.fullmatch(decimal) or len(text) > SYMBOLS or not is_expression(text):
        return False
    half = 0.5001 * 10.0 ** -len(decimal.partition(".")[2])

    def rounds(text: str) -> bool:
        value = _value(_parsed(text))
        return value is not None and abs(value - float(decimal)) <= half

    return _compared(rounds, text)


def _verified(gold: str, answer: str) -> bool:
    """Return whether math-verify reads both and finds them equal; it hides its errors, which count as no."""
    gold_read, answer_read = map(_parsed, (gold, answer))
    golds, answers = map(_relations, (gold_read, answer_read))
    if golds and answers:
        return len(golds) == len(answers) and all(
            any(_is_same_relation(right, relation) for relation in answers) for right in golds
        )
    return _are_equal(gold_read, answer_read)


def _relations(read: Any) -> list[Any]:
    """Return the one relation, or those that a chain joins, as ``0<x<1``; none where that is no relation."""
    from sympy.core.relational import Relational

    relations = [*getattr(read, "_unsorted_args", [read])]
    return relations if all(isinstance(relation, Relational) for relation in relations) else []


def _is_same_relation(right: Any, relation: Any) -> bool:
    """Return whether one is the other times a number: above 0 for inequalities, whose sides may be exchanged.

    math-verify would solve both, for as long as that takes, and take any two without solutions for equal. Of
    equations, fractions are multiplied out.
    """
    from sympy import Eq, Ne, fraction, together

    is_equation = isinstance(right, Eq | Ne)
    for form in (relation, relation.reversed):
        differences = [_of_reals(sides.lhs - sides.rhs) for sides in (right, form)]
        if is_equation:
            differences = [fraction(together(difference))[0] for difference in differences]
        scales = [difference.subs(_point(1, *differences)) for difference in differences]
        right_scale, scale = map(_value, scales)
        if type(form) is not type(right) or not right_scale or not scale:
            continue
        is_positive = is_equation or (right_scale / scale).real > 0
        if is_positive and _are_equal(differences[0] * scales[1], differences[1] * scales[0]):
            return True
    return False


def _are_equal(right: Any, read: Any) -> bool:
    from math_verify import verify

    right, read = map(_of_reals, (right, read))
    if right is None or read is None or any(_differ(right, read, _point(start, right, read)) for start in (1, 3)):
        return False
    return bool(verify(right, read, strict=True, timeout_seconds=None))


def _differ(right: Any, read: Any, point: Mapping[Any, Fraction]) -> bool:
    """Return whether two expressions differ by more than RELATIVE at a point, if they are numbers there (real ones).

    It is cheap, where simplifying their difference is not, and tells numbers apart that math-verify rounds.
    """
    value, other = (_value(side.subs(point)) for side in (right, read))
    if value is None or other is None or (point and (value.imag or other.imag)):
        return False
    return abs(value - other) > float(RELATIVE) * abs(value)


def _point(start: int, *expressions: Any) -> dict[Any, Fraction]:
    """Return a number for every letter of some expressions."""
    letters = set().union(*(getattr(expression, "free_symbols", ()) for expression in expressions))
    return {letter: start - Fraction(29, 37 + place) for place, letter in enumerate(sorted(letters, key=str))}


def _parsed(text: str) -> Any:
    """Return what math-verify reads; None if it reads nothing."""
    from math_verify import LatexExtractionConfig, parse

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns of every call without a timer of its own
    changes = replace(LatexExtractionConfig().normalization_config, units=False, boxed="none")  # no unit but ours: 5t
    config = [LatexExtractionConfig(normalization_config=changes)]
    read = parse(f"${without_mixed_numbers(text)}$", config, parsing_timeout=None, fallback_mode="no_fallback")
    return read[0] if read else None


_ANY_BINOMIAL = re.compile(r"\\binom\{[^{}]*\}\{[^{}]*\}")
_NUMBER_IN_BRACKETS = re.compile(r"(\(|(?<!\\sqrt)\[)((?:[-+\d/ {}]|\\frac)+)(?=[)\]])")
_NUMBER_IN_BRACES = re.compile(r"(?<![a-zA-Z}\]^_])(\{)([-+\d/]+)(?=\})")
_WHOLE_FRACTION = re.compile(r"(\\frac\{)(\d+(?=\}\{\d+\}(?:\\frac|\{))|-\d+(?=\}\{-))")
"""A whole number or a positive fraction beside another, such as the 6/3 in 6/3·1/2."""


def without_mixed_numbers(text: str) -> str:
    """Return a text in which only ``2\\frac{1}{2}`` is a mixed number: ``2(3)`` and ``2\\binom{8}{4}`` are products.

    math-verify adds two plain numbers that stand side by side; one with ``+0`` is no plain number to it.
    """
    text = _ANY_BINOMIAL.sub(r"{\g<0>+0}", text)
    for number in (_NUMBER_IN_BRACKETS, _NUMBER_IN_BRACES, _WHOLE_FRACTION):
        text = number.sub(r"\1\2+0", text)
    return text


def _of_reals(expression: Any) -> Any:
    """Return an expression with real symbols; math-verify's are real in ``2i`` and not in ``2\\cdot i``."""
    reals = {symbol: symbol.func(symbol.name, real=True) for symbol in getattr(expression, "free_symbols", ())}
    return expression.xreplace(reals) if reals else expression


def _value(expression: Any) -> complex | None:
    """Return the number that an expression of sympy is (inf: too large); None for letters and what else is none."""
    try:
        value = complex(expression)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None
    return None if isnan(value.real) or isnan(value.imag) else value


@cache
def _check_symbols() -> None:
    """Raise UserError where math-verify does not find an expression equal to itself, as with an unknown antlr4."""
    why = f"it does not find {KNOWN} equal to itself"
    try:
        if _verified(KNOWN, KNOWN):
            return
    except Exception as error:  # noqa: BLE001 - antlr4 raises Exception itself
        why = f"{type(error).__name__}: {error}"
    versions = ", ".join(f"{name} {version(name)}" for name in PARSERS)
    fix = "pip install math-verify antlr4-python3-runtime==4.9.3"
    raise UserError(f"math-verify cannot compare by symbols with {versions} ({why}); {fix}")


class TooLongError(BaseException):
    """The comparison takes too long; no ``except Exception`` of sympy may hide it."""
