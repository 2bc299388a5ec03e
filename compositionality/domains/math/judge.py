"""Compares a boxed answer with the gold one: as text, as an exact number, part by part, and at last by symbols."""

import json
import re
from collections.abc import Sequence

from compositionality.domains.math.expressions import letters_in
from compositionality.domains.math.inequalities import AND, EMPTY, LESS, OR, intervals
from compositionality.domains.math.normal import normal
from compositionality.domains.math.numbers import RELATIVE, number_of
from compositionality.domains.math.parts import LETTER, bare, brackets, names, point, split_parts, unbraced, unnamed
from compositionality.domains.math.residues import CLASS, are_solutions, classes_of, of_one_family, same_residues
from compositionality.domains.math.symbols import TooLongError, rounds_to, same_by_symbols
from compositionality.domains.math.units import apart
from compositionality.errors import UserError
from compositionality.reward.judge import processor_time
from compositionality.tasks.answers import answer_line, depths, has_box, last_box
from compositionality.types import Reason, Verdict

LONGEST = 400  # characters of an answer that is read; golds of the data sets have at most 100
PARTS = 20  # most parts of a tuple, a set or a list that are compared
SIDES = 4  # most sides of an equation before its last
SYMBOLS_S = 4.0  # processor time of all such comparisons, less than half of what a judging process has for an item

_MARK = re.compile("Answer:|####")  # as DAPO's and GSM8K's prompts ask for it


def judge_math(response: str, golds: Sequence[str]) -> Verdict:
    """Return CORRECT if the answer equals one of ``golds``; MALFORMED if it is no readable expression."""
    boxed = has_box(response)
    answer = last_box(response) if boxed else answer_line(response, _MARK)
    if (answer is None and boxed) or len(answer or "") > LONGEST:
        return Verdict(0.0, Reason.MALFORMED)
    if not answer:
        return Verdict(0.0, Reason.NO_ANSWER)
    try:
        with processor_time(SYMBOLS_S, TooLongError):
            for written in golds:
                gold, asked = normal(written)
                measured, glued = normal(apart(written))  # 5cm, which may be a product: its unit is not left out
                for text, units in dict.fromkeys((normal(answer), normal(apart(answer, asked)))):
                    if (not asked or units <= asked) and _is_right(gold, text):
                        return Verdict(1.0, Reason.CORRECT, answer)
                    if not asked and units and units == glued and _is_right(measured, text):
                        return Verdict(1.0, Reason.CORRECT, answer)
    except (TooLongError, MemoryError, RecursionError):
        pass
    return Verdict(0.0, Reason.WRONG, answer)


def read_golds(ground_truth: str) -> list[str]:
    """Return the gold answers of a row: its text, or the texts of a JSON list.

    Raise UserError if one is empty, unbalanced or too long.
    """
    golds = [ground_truth]
    if ground_truth.startswith('["'):
        try:
            golds = [str(gold) for gold in json.loads(ground_truth)]
        except (ValueError, RecursionError) as error:
            raise UserError(f"ground_truth {ground_truth[:60]!r} is no list of answers; correct the row") from error
    for gold in golds:
        braces = depths(re.findall(r"\\.|[{}]", gold, re.DOTALL))
        if not gold.strip() or min(braces) < 0 or braces[-1]:
            raise UserError(f"ground_truth {gold[:60]!r} is no answer: it is empty, or a brace is missing")
        if len(gold) > LONGEST:
            raise UserError(f"ground_truth {gold[:60]!r}… has more than {LONGEST} characters; drop the row")
    return golds


# ---- comparison of answers in normal form

_VARIABLE = rf"{LETTER}(?:_(?:\w|\{{\w{{1,4}}\}}))?'?"
_QUANTITY = re.compile(
    rf"{_VARIABLE}(?:[+-]{_VARIABLE}){{0,3}}|{LETTER}'{{0,2}}(?:\^\{{-1\}})?\([\w,|∪]{{1,12}}\)"
    r"|m?(?:\\(?:angle|measuredangle|overline|overrightarrow) ?|∠)?\{?[A-Z]{1,4}\}?"
    r"|\\vec ?(?:[a-zA-Z]|\{[a-zA-Z]{1,2}\})|\|[A-Z]{2}\||\[[A-Z]{3,6}\]|S_\{\\triangle ?[A-Z]{3}\}"
    r"|(?i:the|final|answer|total|area|volume|perimeter|probability|length|distance|radius|speed|time|cost|number|sum|of)+"
)
"""The left side of an equation that names its right one: a variable, sums of them, f(2), AB, an angle, a word."""
_UNEQUAL = re.compile(r"[<>!]|\\not")
_FUNCTION = re.compile(
    r"\\(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?(?![a-z])|\\(?:log|ln|lg|lfloor|lceil|lvert)(?![a-z])|[|⌊⌈]"
)
"""Functions. Where the gold answer has none, an answer with one may be the question."""
_MEMBER = re.compile(rf"({LETTER})\\in(?=[(\[]|\\\{{)")
_ROUNDED = re.compile(r"[.eE]|\\times|\\cdot")
"""Marks of a decimal or an exponent: the number may be rounded."""
_QUOTIENT = re.compile(r"^\\frac\{(\w+)\}\{(\w+)\}$|^(\w+)/(\w+)$")
"""A ratio, written as a fraction of the same numbers."""
_DIVISION = re.compile(r"/|\\frac")
"""Marks of a division left undone where the answer is a whole number."""


def _is_right(gold: str, text: str) -> bool:
    """Return whether an answer in normal form is the gold one; after ``\\approx`` only what it rounds to may stand."""
    answer, about, decimal = text.partition("\\approx")
    if (sets := _memberships(gold)) and (found_sets := _memberships(answer)):  # in any order, each of its own letter
        return sets.keys() == found_sets.keys() and all(_is_right(sets[one], found_sets[one]) for one in sets)
    if (CLASS in gold) != (CLASS in answer):
        gold, answer = classes_of(gold), classes_of(answer)
    if gold != answer and (same := same_residues(gold, answer)) is not None:
        return same and not about
    if gold != answer and AND in gold + answer and OR in gold + answer:
        return False
    members = [_MEMBER.match(side) for side in (gold, answer)]
    if any(point(one) and member for one, member in ((gold, members[1]), (answer, members[0]))):
        return False
    differ = {joint for joint in (AND, OR) if (joint in gold) != (joint in answer)}
    joined = gold if OR in gold else answer
    if (AND in differ or (OR in differ and not are_solutions(joined))) and not LESS.search(gold + answer):
        return False  # of formulas; x=1 \lor x=2 is 1,2
    if AND in gold and "," in answer and not {AND, OR} & {*answer} and intervals(gold)[1] != EMPTY:
        answer = answer.replace(",", f",{AND}")  # x>1, x<3 for x>1 and x<3
    gold, answer, family = of_one_family(gold, answer)
    (variable, right), (other, found) = intervals(gold, family), intervals(answer, family)
    named = {letter or (member[1] if member else "") for letter, member in zip((variable, other), members, strict=True)}
    if len(named - {""}) > 1:
        return False  # y\in(0,1) is not said of x
    if variable:
        if other not in ("", variable) or (not other and (LESS.search(answer) or point(answer))):
            return False  # x+1<5 is the question to x<4; (x,y)=(1,4) is no interval
        gold, answer = right, found
    elif other and not LESS.search(gold):
        if found == EMPTY or point(gold):
            return False  # it is not said that x<1 and x>3 is empty
        answer = found
    gold, answer = (side.replace(AND, "").replace(OR, "") for side in (gold, answer))
    return _is_worked_out(gold, answer) and _same(gold, answer) and (not about or rounds_to(answer, decimal))


def _memberships(text: str) -> dict[str, str]:
    """Return the parts of a list such as ``x\\in[0,1],y\\in[2,3]`` by their letters; empty if it is none."""
    parts = split_parts(text.replace(f",{AND}", ",").replace(AND, ","))
    members = {match[1]: part for part in parts if (match := _MEMBER.match(part))}
    return members if len(members) == len(parts) > 1 else {}


def _is_worked_out(gold: str, answer: str) -> bool:
    """Return whether a side of the answer is a number where the gold is one; else functions only where it has some."""
    gold, answer = unnamed(unbraced(gold)), unbraced(answer)
    if gold == answer:
        return True
    if (value := number_of(gold)) is not None:
        whole = value.denominator == 1 and not _DIVISION.search(gold)
        sides = map(bare, answer.split("="))
        return any(number_of(side) is not None and not (whole and _DIVISION.search(side)) for side in sides)
    return bool(_FUNCTION.search(gold)) or not _FUNCTION.search(answer.split("=")[-1])


def _same(gold: str, answer: str) -> bool:
    gold, answer = unbraced(gold), unbraced(answer)
    single = len(split_parts(answer)) == 1
    if "=" in gold and "=" in answer:
        if all(side.startswith(("y=", "f(x)=")) for side in (gold, answer)):
            gold, answer = (re.sub(r"^f\(x\)=", "y=", side) for side in (gold, answer))
        named = unnamed(gold)
        name = gold.removesuffix(named)
        if len(name) == 2:
            answer = re.sub(rf"^{name[0]}_\w=", name, answer)  # x_1=5 is x=5
        if name and single and answer.startswith(name):
            gold, answer = bare(named), bare(answer.removeprefix(name))
        elif (name + answer)[:1] == "(" and (values := point(gold)):  # (x,y)=(1,2) is x=1, y=2
            others = point(answer)
            return values.keys() == others.keys() and all(_is_same_part(values[one], others[one]) for one in values)
        elif number_of(bare(named)) is not None or (single and answer.count("=") > 1):
            return gold == answer  # x-3=2 is the question to x=5
    elif gold.isalpha() and gold.isupper() and "=" in answer and answer.partition("=")[0].isupper():
        return False  # B=C is no C
    else:
        gold, answer = (bare(unnamed(text)) if "=" in text else unnamed(text) for text in (gold, answer))
    if gold == answer or same_residues(gold, answer):
        return True
    if "=" in answer and "=" not in gold and not _UNEQUAL.search(answer) and single:
        *sides, result = answer.split("=")
        if not result or len(sides) > SIDES:
            return False
        return all(_is_named(side, gold) or _same(gold, side) for side in sides) and _same(gold, bare(result))
    right, number = number_of(gold), number_of(answer)
    if right is not None and number is not None:  # no leniency for percents
        rounded = right.denominator > 1 and (_ROUNDED.search(gold) or _ROUNDED.search(answer))
        return right == number or (bool(rounded) and abs(right - number) <= RELATIVE * abs(right))
    if ":" in gold:  # a ratio, or a time
        answer = _QUOTIENT.sub(r"\1\3:\2\4", answer)
        parts = gold.replace(":", ","), answer.replace(":", ",")
        return gold.count(":") == answer.count(":") and _same_parts(*parts, ordered=True)
    joined = split_parts(answer) if "∪" not in answer else answer.split("∪")
    if "∪" in gold and ("∪" in answer or (len(joined) > 1 and all(map(brackets, joined)))):
        return _same_in_any_order(gold.split("∪"), joined)
    gold_pair, pair = brackets(gold), brackets(answer)
    gold_names, part_names = names(split_parts(gold)), names(split_parts(answer))
    has_letters = len({re.findall(f"{LETTER}|.", name)[0] for name in part_names if name}) > 1  # x=5,y=6
    for one, other, left in ((gold_pair, pair, part_names), (pair, gold_pair, gold_names)):
        if one and one[:2] == ("(", ")") and not other and all(left) and left == sorted(set(left)):
            listed = answer if gold_pair else one[2]  # x=1, y=2 is (1,2)
            return _same_parts(gold_pair[2] if gold_pair else gold, listed, ordered=True)
    if gold_pair and pair:
        return gold_pair[:2] == pair[:2] and _same_parts(gold_pair[2], pair[2], ordered="{" not in gold_pair[0])
    if gold_pair or pair:  # a set may leave out its braces
        opened, _, inner = gold_pair or pair or ("", "", "")
        listed = answer if gold_pair else gold
        is_list = gold_pair is not None or len(split_parts(listed)) > 1
        is_named_apart = has_letters and not any(names(split_parts(inner)))  # a=1,b=2 is no {1,2}
        if opened != "\\{" or inner == EMPTY or not is_list or is_named_apart:
            return False
        return _same_parts(*((inner, listed) if gold_pair else (listed, inner)), ordered=False)
    if len(gold_names) > 1 or len(part_names) > 1:  # x=5,y=6 is no 6,5
        ordered = (has_letters and not any(gold_names)) or (len(set(gold_names)) > 1 and not any(part_names))
        return _same_parts(gold, answer, ordered=ordered)
    return same_by_symbols(gold, answer)


def _is_named(side: str, gold: str) -> bool:
    """Return whether a left side is a quantity that ``gold`` may be the value of; ``a+c`` is none of ``a+b``."""
    is_sum = "(" not in side and re.search("[+-]", side) is not None
    return _QUANTITY.fullmatch(side) is not None and not (is_sum and letters_in(side) & letters_in(gold))


def _same_parts(gold: str, answer: str, ordered: bool) -> bool:
    golds, answers = split_parts(gold), split_parts(answer)
    if len(golds) != len(answers) or len(golds) > PARTS:
        return False
    if ordered or len(golds) == 1:
        return all(map(_is_same_part, golds, answers))
    return _same_in_any_order(golds, answers)


def _is_same_part(gold: str, answer: str) -> bool:
    gold, answer, _ = of_one_family(bare(gold), bare(answer))
    is_nested = "\\{" in gold + answer and gold.count("\\{") != answer.count("\\{")  # {1,{2}} is no {1,2}
    return not is_nested and _is_worked_out(gold, answer) and _same(gold, answer)


def _same_in_any_order(golds: list[str], answers: list[str]) -> bool:
    """Return whether each gold part is that of an answer's part of its own."""
    if len(golds) != len(answers) or len(golds) > PARTS:
        return False
    for gold in golds:
        match = next((answer for answer in answers if _is_same_part(gold, answer)), None)
        if match is None:
            return False
        answers.remove(match)
    return True
