"""Judging answers to questions of science; what is accepted is in README.md beside this."""

import logging
import re
import unicodedata
from functools import cache
from typing import NamedTuple

from compositionality.domains.stem.endpoint import EndpointError, ask_judge, can_be_asked
from compositionality.errors import without_secrets
from compositionality.tasks.answer_text import last_box, without_styles
from compositionality.types import Reason, Verdict

LETTERS = "ABCDEFGHIJ"
MAX_EXACT = 200
_LOG = logging.getLogger(__name__)
_LETTER = re.compile(
    r"(?:option |choice |answer:? )?[({\[]?\s*([a-z])\s*(?:[)}\].:]+(?P<rest>(?:\s.*)?))?", re.IGNORECASE | re.DOTALL
)
_LINE = re.compile(r"(?:the )?(?:final |correct )?answer(?: is:?|:)\s*(.*)", re.IGNORECASE)
_FONT = re.compile(r"\\(?:bf|rm|it|sf)(?:series|family)?\b\s*")
_OTHER_LETTER = re.compile(r"(?<!\w)(?:\(?[A-J]\)|[A-J][.:]\s|(?:or|and|not)\s+\(?[A-J]\b)|^\s*[A-Ja-j][).]?\s*$")


class ChoiceTruth(NamedTuple):
    """The right letter out of the first ``options`` letters."""

    letter: str
    options: int


class FreeTruth(NamedTuple):
    """The reference answer to a question; ``unit`` may stand behind it. ``exact``: nothing else is right."""

    question: str
    answer: str
    unit: str = ""
    exact: bool = False


def judge_choice(response: str, truth: ChoiceTruth) -> Verdict:
    """The one letter in the last box, perhaps before its option; without a box, in a last line ``Answer: X``."""
    box = last_box(response)
    if box is None:
        last_line = response.rstrip().rpartition("\n")[2].replace("*", "").strip()
        found = _LINE.fullmatch(last_line)
        letter = one_letter(found[1]) if found else None
    else:
        letter = one_letter(box)
    if box and letter is None:
        return Verdict(0.0, Reason.MALFORMED, box[:MAX_EXACT])
    if letter is None or letter not in LETTERS[: truth.options]:
        return Verdict(0.0, Reason.NO_ANSWER)
    right = letter == truth.letter
    return Verdict(float(right), Reason.CORRECT if right else Reason.WRONG, letter)


def one_letter(text: str) -> str | None:
    """The letter, in upper case, of ``(B)``, ``B. its text``, ``Option B``; None for more than one, or none."""
    if len(text) > MAX_EXACT:
        return None
    found = _LETTER.fullmatch(_FONT.sub("", without_styles(text)).strip(" $*"))
    return None if found is None or _OTHER_LETTER.search(found["rest"] or "") else found[1].upper()


def judge_free(response: str, truth: FreeTruth) -> Verdict:
    """The last box: the reference answer itself, or what the model behind the endpoint takes for it.

    ERROR where the model is needed and gives no decision.
    """
    box = last_box(response)
    if not box:
        return Verdict(0.0, Reason.NO_ANSWER)
    said = box[:MAX_EXACT]
    if len(box) <= MAX_EXACT and normal(box) in {normal(truth.answer), normal(f"{truth.answer} {truth.unit}")}:
        return Verdict(1.0, Reason.CORRECT, said)
    if truth.exact:
        return Verdict(0.0, Reason.WRONG, said)
    if not can_be_asked(box):
        return Verdict(0.0, Reason.MALFORMED, said)
    try:
        right = ask_judge(truth.question, truth.answer, box)
    except EndpointError as error:
        _warn_once(without_secrets(str(error)))
        return Verdict(0.0, Reason.ERROR, said)
    return Verdict(float(right), Reason.CORRECT if right else Reason.WRONG, said)


def normal(answer: str) -> str:
    """Dollar signs around, styles of LaTeX, a full stop, thousands separators and the width of spaces do not count.

    Case does (mW is not MW).
    """
    text = unicodedata.normalize("NFC", without_styles(answer)).replace("−", "-").strip().strip("$")
    text = re.sub(r"\\[,;! ]|~", " ", text)
    text = re.sub(r"(?<=[0-9])(?:,|\{,\})(?=[0-9]{3}(?![0-9]))", "", text)
    return " ".join(text.split()).removesuffix(".")


@cache
def _warn_once(trouble: str) -> None:
    """One line for each kind of trouble in a process, not one for each answer."""
    _LOG.warning("the judge of free answers gives no verdict: %s", trouble)
