"""Whether a boxed answer is the gold one: as text, as an exact number, part by part, and at last by symbols.

Symbols are compared by math-verify (Kydlíček), which runs sympy on what a model wrote: only in a process of the judge
pool, and only on expressions whose size bounds the work.
"""

import contextlib
import json
import logging
import re
import signal
import threading
from collections.abc import Iterator, Sequence

from compositionality.domains.math.normal import brackets, normal, split_top, unnamed
from compositionality.domains.math.numbers import is_decimal, read_number, same_number
from compositionality.domains.math.reading import LONGEST, marked_line
from compositionality.errors import UserError
from compositionality.tasks.answer_text import has_box, last_box
from compositionality.types import Reason, Verdict

SYMBOLS = 200
"""Longest expression that is compared by symbols, in characters."""
SYMBOLS_S = 4.0
"""Processor time of one such comparison; less than half of what a judging process has for an item."""
PARTS = 20
"""Most parts of a tuple, a set or a list that are compared."""
_HEAVY = re.compile(
    r"\d{16}"  # long numbers
    r"|\^\{?-?\d{3}|\^\{[^{}]*\{|\^[^^]{0,40}\^"  # large, nested and chained powers
    r"|!|\\(?:int|sum|prod|lim|binom|iint|oint|bigcup|bigcap|choose|begin\{cases\})"  # what would be worked out
    r"|\\(?:max|min|gcd|lcm|sup|inf|det|arg)(?![a-z])|\\approx-?\d+$|\d_|'"  # … or is no expression
    r"|\\(?:[dt]binom|Gamma|gamma|zeta|input|include|def|newcommand|write|catcode)"
)
_UNEQUAL = re.compile(r"[<>!]|\\not")
_JOINED = re.compile(r"[})\]]\d")
"""A digit right behind a bracket: a product or a slip, nobody can say."""
_COMMAND = re.compile(r"\\(?:begin|end)\{[a-z]?matrix\}|\\[a-zA-Z]+")
_COMMANDS = re.compile(r"(?:\\[a-zA-Z]+|\\\\|[^\\])+")
_LONG_NAME = re.compile(r"[a-zA-Z_]{4,}")
_FUNCTION = re.compile(
    r"\\(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?(?![a-z])|\\(?:log|ln|lg|lfloor|lceil|lvert)(?![a-z])|[|⌊⌈]"
)
"""What a gold answer without functions does not need: an answer with one may be the question."""
_OPERATION = re.compile(rf"[\w)}}\]][+*/-]|\\(?:cdot|times|div|pm|mp|sqrt)|\)\(|\^|{_FUNCTION.pattern}")
"""… and what a plain number does not."""
_WORD = re.compile(r"[a-z]{3,}")
"""Letters in a row are a triangle or a word: no product, so their order counts."""
_ORDERED = frozenset({("(", ")"), ("[", "]"), ("(", "]"), ("[", ")")})


def judge_math(response: str, golds: Sequence[str]) -> Verdict:
    """CORRECT if the answer of ``response`` equals one of ``golds``; MALFORMED if it is no readable expression."""
    answer = last_box(response) if has_box(response) else marked_line(response)
    if answer is None and has_box(response):
        return Verdict(0.0, Reason.MALFORMED)
    if not answer:
        return Verdict(0.0, Reason.NO_ANSWER)
    if len(answer) > LONGEST:
        return Verdict(0.0, Reason.MALFORMED)
    if any(_is_worked_out(normal(gold), normal(answer)) and _same(normal(gold), normal(answer)) for gold in golds):
        return Verdict(1.0, Reason.CORRECT, answer)
    return Verdict(0.0, Reason.WRONG, answer)


def read_golds(ground_truth: str) -> list[str]:
    """The gold answers of a row: its text, or the texts of a JSON list. UserError if one is empty or unbalanced."""
    golds = [ground_truth]
    if ground_truth.startswith('["'):
        try:
            golds = [str(one) for one in json.loads(ground_truth)]
        except (ValueError, RecursionError) as error:
            raise UserError(f"ground_truth {ground_truth[:60]!r} is no list of answers; correct the row") from error
    for gold in golds:
        if not gold.strip() or not _is_balanced(gold):
            raise UserError(f"ground_truth {gold[:60]!r} is no answer: it is empty, or a brace is missing")
        if len(gold) > LONGEST:
            raise UserError(f"ground_truth {gold[:60]!r}… has more than {LONGEST} characters; drop the row")
    return golds


def _is_balanced(text: str) -> bool:
    """Whether every brace that groups is opened before it is closed."""
    depth = 0
    for part in re.findall(r"\\.|[{}]", text, re.DOTALL):
        depth += (part == "{") - (part == "}")
        if depth < 0:
            return False
    return depth == 0


def _is_worked_out(gold: str, answer: str) -> bool:
    """False for an answer with operations left for a plain number, or with functions for a gold answer without any."""
    if gold == answer:
        return True
    if read_number(gold) is not None:
        return not _OPERATION.search(answer) or any(read_number(side) is not None for side in answer.split("="))
    return bool(_FUNCTION.search(gold)) or not _FUNCTION.search(answer.split("=")[-1])


def _same(gold: str, answer: str) -> bool:
    if gold == answer:
        return True
    if "=" not in gold or "=" not in answer:
        gold, answer = unnamed(gold), unnamed(answer)
    if gold == answer:
        return True
    if "=" in answer and "=" not in gold and not _UNEQUAL.search(answer) and len(split_top(answer)) == 1:
        *before, last = answer.split("=")
        return bool(last) and all(read_number(one) is None or _same(gold, one) for one in before) and _same(gold, last)
    numbers = read_number(gold), read_number(answer)
    if numbers[0] is not None and numbers[1] is not None:
        exact = not (is_decimal(gold) or is_decimal(answer))
        return same_number(numbers[0], numbers[1], exact)
    if "∪" in gold and "∪" in answer:
        return _same_in_any_order(gold.split("∪"), answer.split("∪"))
    around = brackets(gold), brackets(answer)
    if around[0] and around[1]:
        if around[0][:2] != around[1][:2]:
            return False
        return _same_parts(around[0][2], around[1][2], around[0][:2] in _ORDERED)
    if around[0] or around[1]:
        is_set = [one is not None and one[0] == "\\{" for one in around]
        bare = answer if around[0] else gold
        inner = (around[0] or around[1] or ("", "", ""))[2]
        return any(is_set) and len(split_top(bare)) > 1 and _same_parts(inner, bare, ordered=False)
    if len(split_top(gold)) > 1 or len(split_top(answer)) > 1:
        return _same_parts(gold, answer, ordered=False)
    return _same_by_symbols(gold, answer)


def _same_parts(gold: str, answer: str, ordered: bool) -> bool:
    """Part by part; without an order each part of the gold answer has a part of its own."""
    golds, answers = split_top(gold), split_top(answer)
    if len(golds) != len(answers) or len(golds) > PARTS:
        return False
    if len(golds) == 1:
        return _same(golds[0], answers[0])
    if ordered:
        return all(_same(one, other) for one, other in zip(golds, answers, strict=True))
    return _same_in_any_order(golds, answers)


def _same_in_any_order(golds: list[str], answers: list[str]) -> bool:
    """Whether each gold part is that of an answer's part of its own."""
    if len(golds) != len(answers) or len(golds) > PARTS:
        return False
    for one in golds:
        match = next((other for other in answers if _same(one, other)), None)
        if match is None:
            return False
        answers.remove(match)
    return True


def _same_by_symbols(gold: str, answer: str) -> bool:
    """As sympy sees both; never for what would keep it busy, or for what is no mathematics."""
    if max(len(gold), len(answer)) > SYMBOLS or not _is_expression(answer) or _WORD.fullmatch(gold):
        return False
    from math_verify import LatexExtractionConfig, parse, verify

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns of every call without a timer of its own
    config = [LatexExtractionConfig()]
    try:
        with _processor_time(SYMBOLS_S):
            read = [parse(f"${t}$", config, parsing_timeout=None, fallback_mode="no_fallback") for t in (gold, answer)]
            return bool(read[0] and read[1]) and bool(verify(read[0], read[1], strict=True, timeout_seconds=None))
    except (_TooLongError, MemoryError, RecursionError):
        return False


class _TooLongError(BaseException):
    """The comparison takes too long; no ``except Exception`` of sympy may hide it."""


@contextlib.contextmanager
def _processor_time(seconds: float) -> Iterator[None]:
    """_TooLongError in what runs longer than ``seconds`` of processor time; outside the main thread nothing ends it.

    So an answer that keeps sympy busy is wrong. The alarm of the judging process, which makes it an error, stays.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _is_expression(text: str) -> bool:
    """Whether ``text`` is LaTeX of bounded work: commands, signs, digits and names of at most three letters."""
    if not text.isascii() or _HEAVY.search(text) or _JOINED.search(text) or text.count("{") != text.count("}"):
        return False
    return _COMMANDS.fullmatch(text) is not None and not _LONG_NAME.search(_COMMAND.sub(" ", text))
