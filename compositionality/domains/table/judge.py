r"""Judging answers about tables: the last closed ``\boxed{}``, several answers between ``|``. README.md beside this."""

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from compositionality.tasks.answers import last_box, without_styles
from compositionality.types import Reason, Verdict

MAX_LENGTH, MAX_ANSWERS = 2000, 100
TOLERANCE = 1e-3
_PERCENT = "%"
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)\s*(?P<currency>[$€£¥]?)\s*"
    r"(?P<digits>(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?P<decimals>\.[0-9]*)?|(?P<point>\.[0-9]+))"
    r"(?P<power>e[+-]?[0-9]{1,3})?(?P<unit>\s*%|\s+[^\W\d_][^\d]*)?"
)
_SCALES = {
    "dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9,
    "trillion": 1e12,
}  # fmt: skip
_CURRENCIES = {
    "dollar": "$", "dollars": "$", "usd": "$", "euro": "€", "euros": "€", "eur": "€", "gbp": "£", "yen": "¥",
}  # fmt: skip
_AMBIGUOUS = "m"  # metres, or millions
_FRACTION = re.compile(r"(-?)\\[dt]?frac\{([0-9]{1,9})\}\{([1-9][0-9]{0,8})\}")


class Amount(NamedTuple):
    """A number as it is written: ``whole`` also as 5.0 or 5e3; ``unit`` behind it, ``currency`` before it."""

    value: float
    whole: bool
    currency: str
    unit: str


class TableEntry(NamedTuple):
    """One answer in normal form, and the number that it is, if it is one."""

    text: str
    amount: Amount | None


def judge_table(response: str, answers: tuple[str, ...]) -> Verdict:
    """Return right if the boxed answers are ``answers`` in any order, each as often."""
    box = last_box(response)
    if not box:
        return Verdict(0.0, Reason.NO_ANSWER)
    if len(box) > MAX_LENGTH:
        return Verdict(0.0, Reason.MALFORMED, box[:MAX_LENGTH])
    given = without_styles(box).replace("\\|", "|").replace("\\mid", "|").split("|")
    right = len(given) == len(answers) and all(map(_is_same, _entries(answers), _entries(given)))
    return Verdict(float(right), Reason.CORRECT if right else Reason.WRONG, box)


def _entries(answers: Sequence[str]) -> list[TableEntry]:
    """Return numbers by value, then texts; two lists that agree pairwise in any order agree in this one."""

    def key(entry: TableEntry) -> tuple[bool, float, str]:
        return entry.amount is None, entry.amount.value if entry.amount else 0.0, entry.text

    return sorted(map(_entry, answers), key=key)


def _entry(text: str) -> TableEntry:
    """Read one answer. Case, spaces, quotes, a last full stop and signs of LaTeX do not count."""
    text = unicodedata.normalize("NFC", without_styles(text)).replace("−", "-").replace("{,}", ",")
    text = re.sub(r"\\([%$&_#])", r"\1", text)
    text = re.sub(r"\\[,;! ]", " ", text)
    text = " ".join(text.split()).strip("'\"`“”‘’").casefold()
    text = text.removesuffix(".").strip()
    if text.startswith("$") and text.endswith("$") and len(text) > 1:
        text = text[1:-1].strip()
    return TableEntry(text, _amount(text))


def _amount(text: str) -> Amount | None:
    """Return the number that a text is, with or without thousands separators, currency, unit."""
    if fraction := _FRACTION.fullmatch(text):
        return Amount(float(fraction[1] + "1") * int(fraction[2]) / int(fraction[3]), False, "", "")
    number = _NUMBER.fullmatch(text)
    if not number:
        return None
    value = float(number["sign"] + number["digits"].replace(",", "") + (number["power"] or ""))
    whole = value.is_integer() and abs(value) < 2**53
    unit = (number["unit"] or "").strip()
    scale, _, rest = unit.partition(" ")
    if scale in _SCALES:
        value, unit = value * _SCALES[scale], rest
    currency = number["currency"]
    if not currency and unit in _CURRENCIES:
        currency, unit = _CURRENCIES[unit], ""
    return Amount(value, whole, currency, "%" if unit == "percent" else unit) if math.isfinite(value) else None


def _is_same(truth: TableEntry, given: TableEntry) -> bool:
    """Accept equal text; or numbers within TOLERANCE of the truth, whole numbers exactly, in the same unit."""
    if truth.text == given.text:
        return bool(truth.text)
    right, amount = truth.amount, given.amount
    if right is None or amount is None or not _is_same_unit(right, amount):
        return False
    if right.whole and amount.whole:
        return right.value == amount.value
    if right.whole and abs(amount.value - right.value) > 0.5:
        return False
    return abs(amount.value - right.value) <= TOLERANCE * abs(right.value)


def _is_same_unit(truth: Amount, given: Amount) -> bool:
    """Accept a currency or % left out or added, and the truth's unit left out."""
    if truth.currency and given.currency and truth.currency != given.currency:
        return False
    if truth.unit == given.unit:
        return True
    if _AMBIGUOUS in (truth.unit, given.unit):
        return False
    return not given.unit or (given.unit == _PERCENT and not truth.unit)
