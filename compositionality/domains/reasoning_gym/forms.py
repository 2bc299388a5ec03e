"""The answers that reach a scorer of the library, and what must hold besides its full score.

A scorer sees an answer only in the form of its data set: an allow-list, so that no text is evaluated that is not a
plain value. Where a scorer pays in full for answers that are not right, a check of ours has to agree with it.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from compositionality.tasks.answers import depths, read_json, with_distinct_keys
from compositionality.tasks.arithmetic import parse, value_of

Entry = Mapping[str, Any]
Check = Callable[[str, Entry], bool]
LONGEST, PER_GOLD = 2000, 8  # characters of an answer: a constant, and times the length of the library's own
DEEPEST = 64  # brackets
_PLAIN = frozenset(chr(code) for code in range(32, 127)) | set("\n\r\t")


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a data set's answers.

    ``text`` matches whole answers, ``before`` must hold for the scorer to see one, ``also`` for its score to count.
    ``solves_above``: scores above it are those of full solutions, paid less because shorter ones exist.
    """

    text: str | None = None
    before: Check | None = None
    also: Check | None = None
    solves_above: float | None = None


def is_readable(dataset: str, answer: str, entry: Entry) -> bool:
    """Return whether the scorer of ``dataset`` may see the answer; linear in its length up to the bound."""
    gold = str(entry["answer"] or "")
    if len(answer) > LONGEST + PER_GOLD * len(gold):
        return False
    if not _PLAIN.union(str(entry.get("question", "")), gold).issuperset(answer) or max(depths(answer)) > DEEPEST:
        return False
    form = FORMS.get(dataset, ANY)
    if form.text is not None and not re.fullmatch(form.text, answer):
        return False
    return form.before is None or form.before(answer, entry)


def is_solved(dataset: str, score: float, answer: str, entry: Entry) -> bool:
    """Return whether the library's score is that of a right answer. More than 1 is out of its range, so none."""
    form = FORMS.get(dataset, ANY)
    full = score == 1 or (form.solves_above is not None and form.solves_above < score < 1)
    return full and (form.also is None or form.also(answer, entry))


# ---- checks of ours


def _same_words(answer: str, entry: Entry) -> bool:
    return answer.lower().split() == str(entry["answer"]).lower().split()


def _same_letters(answer: str, entry: Entry) -> bool:
    return "".join(answer.lower().split()) == "".join(str(entry["answer"]).lower().split())


def _same_json(answer: str, entry: Entry) -> bool:
    """Accept equal values of equal types: neither ``true`` nor 1.0 is 1. An answer that is not JSON: the gold text."""
    gold = str(entry["answer"]).strip()
    try:
        value, gold_value = (json.loads(text, object_pairs_hook=with_distinct_keys) for text in (answer, gold))
        return json.dumps(value, sort_keys=True) == json.dumps(gold_value, sort_keys=True)
    except (ValueError, RecursionError):
        return answer == gold


def _same_share(answer: str, entry: Entry) -> bool:
    """Accept a probability within 1 %: the scorer's tolerance is absolute, and takes 0 for a small one."""
    numerator, _, denominator = answer.partition("/")
    gold = float(entry["answer"])
    return float(denominator or 1) != 0 and abs(float(numerator) / float(denominator or 1) - gold) <= 0.01 * gold


def _numbers(text: str) -> list[float]:
    return [float(number) for number in json.loads(text.replace("'", '"'))]


def _same_cells(answer: str, entry: Entry) -> bool:
    """Accept every cell as asked for, to two decimal places."""
    pairs = zip(answer.split(), str(entry["answer"]).split(), strict=True)
    return all(abs(float(cell) - float(gold_cell)) <= 0.01 for cell, gold_cell in pairs)


def _same_decimal(answer: str, entry: Entry) -> bool:
    """Accept ten significant digits: twelve are asked for, and the library rounds after each operation."""
    gold = Decimal(str(entry["answer"]))
    return abs(Decimal(answer) - gold) <= abs(gold) * Decimal("1e-10")


def _makes_24(answer: str, entry: Entry) -> bool:
    postfix = parse(answer, "+-*/") or []
    numbers = sorted(token for token in postfix if isinstance(token, int))
    return numbers == sorted(entry["metadata"]["numbers"]) and value_of(postfix) == 24


def _conclusion(answer: str, entry: Entry) -> bool:
    """Take one formula of the question's variables: the scorer reads no further than its end.

    And no long run of negations, whose square the scorer's time grows with.
    """
    text, variables = "".join(answer.split()), set(entry["metadata"]["variables"])
    is_one = re.search("[A-Z)][A-Z(¬]", text) is None
    return is_one and "¬" * (DEEPEST + 1) not in text and set(re.findall("[A-Z]", text)) <= variables


def _vertices_once(answer: str, entry: Entry) -> bool:
    vertices = [int(vertex) for vertex in re.findall(r'"(\d+)"', answer)]
    return sorted(vertices) == sorted(entry["metadata"]["puzzle"]["vertices"])


def _lists_of_lists(answer: str, _entry: Entry) -> bool:
    """Take a JSON list of lists of texts."""
    lists = read_json(answer)
    return isinstance(lists, list) and all(
        isinstance(inner, list) and all(isinstance(text, str) for text in inner) for inner in lists
    )


def _moves_boxes(answer: str, _entry: Entry) -> bool:
    """Take a JSON list of plans; the scorer would move targets to the boxes as well."""
    plans = read_json(answer)
    return isinstance(plans, list) and all(
        isinstance(plan, dict)
        and all(re.fullmatch(_AGENT, name) and re.fullmatch(_MOVE, str(move)) for name, move in plan.items())
        for plan in plans
    )


# ---- expressions that may reach sympy: polynomials as sums of products, antiderivatives of elementary functions
#
# Nothing is evaluated here. What is refused are names that sympy would call (``Integral`` answers any integral),
# attributes, strings, and powers whose value would fill the memory.

FUNCTIONS = frozenset(
    ("exp", "log", "sqrt", "sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh")
)
LARGEST_POWER = 400  # product of the whole exponents of all parentheses
_TOKEN = re.compile(r"\s+|(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<name>[A-Za-z]+)|(?P<sign>\*\*|[-+*/()])|(?P<bad>.)", re.S)
_LONGEST_NUMBER = 15


def is_polynomial_text(text: str, variables: set[str]) -> bool:
    """Return whether ``text`` is a sum of terms like ``12*x**3*y``.

    There are no parentheses, so that no product is left to multiply. Without variables it is a sum of numbers.
    """
    letter = f"[{''.join(sorted(variables))}]" if variables else "(?!)"
    power = rf"{letter}(?:\s*\*\*\s*[0-9]{{1,3}})?"
    powers = rf"{power}(?:\s*\*\s*{power})*"
    term = rf"(?:[0-9]{{1,{_LONGEST_NUMBER}}}(?:\s*\*\s*{powers})?|{powers})"
    return re.fullmatch(rf"(?:[+-]\s*)?{term}(?:\s*[+-]\s*{term})*", text) is not None


def is_antiderivative_text(text: str, variable: str) -> bool:
    """Return whether ``text`` has numbers, the variable, C, E, pi, elementary functions and ``+ - * / **`` alone."""
    matches = [match for match in _TOKEN.finditer(text) if not match[0].isspace()]
    tokens, names = [match[0] for match in matches], FUNCTIONS | {variable, "C", "E", "pi"}
    if not tokens or any(match["bad"] or len(match["number"] or "") > _LONGEST_NUMBER for match in matches):
        return False
    if any(token[0].isalpha() and token not in names for token in tokens):
        return False
    for token, following in pairwise([*tokens, ""]):
        if (token in FUNCTIONS) != (following == "(" and token[0].isalpha()):
            return False
        if token == ")" and following and (following == "(" or following[0].isalnum()):
            return False
    return _powers_are_small(tokens)


def _powers_are_small(tokens: list[str]) -> bool:
    """Refuse powers of numbers and of powers, and those of parentheses but small whole ones and fractions."""
    product = 1
    for place, token in enumerate(tokens):
        if token != "**":
            continue
        base, tail = tokens[place - 1] if place else "", " ".join(tokens[place + 1 : place + 7])
        plain = re.match(r"([0-9]{1,2})(?! \*\*)(?![0-9.])|\( -? ?([0-9]{1,2})(?: / [0-9]{1,2})? \)(?! \*\*)", tail)
        if base == ")":
            if plain is None:
                return False
            product *= max(1, int(plain[1] or plain[2]))
        elif not base.isalpha() or (plain is None and not (tail.startswith("(") or tail[:1].isalpha())):
            return False
    return product <= LARGEST_POWER


# ---- the forms

_DIGITS = "[0-9]{1,60}"
_NUMBER = rf"[+-]?{_DIGITS}(?:\.{_DIGITS})?"
_COMMAS = rf"[+-]?(?:{_DIGITS}|[0-9]{{1,3}}(?:,[0-9]{{3}}){{1,20}})(?:\.{_DIGITS})?"
_EXPONENT = "(?:[eE][+-]?[0-9]{1,3})?"
_GRID = r"[0-9]+(?:\s+[0-9]+)*"
_AGENT, _MOVE = r"Agent\[[0-9.]+, [0-9.]+\]", r"move\(box_\w+, (?:target_\w+|square\[[0-9.]+, [0-9.]+\])\)"
_TURN, _SPACE = "[A-Za-z]'?2?", r"\s+"
_ROLE = "[A-Za-z]+ is an? [A-Za-z]+"


def _list_of(item: str, separator: str = r"\s*,\s*") -> str:
    return f"{item}(?:{separator}{item})*"


def _json_list(item: str, brackets: str = "[]") -> str:
    return rf"\{brackets[0]}\s*{_list_of(item)}\s*\{brackets[1]}"


ANY = Form()
_INTEGRAL = Form(before=lambda answer, entry: is_antiderivative_text(answer, str(entry["metadata"]["variable"])))
FORMS: Mapping[str, Form] = {
    "advanced_geometry": Form(rf"{_NUMBER}\s*°?|\(?\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)?"),
    "arc_agi": Form(_GRID),
    "binary_matrix": Form(_GRID),
    "bitwise_arithmetic": Form("[+-]?0[xX][0-9a-fA-F]{1,200}"),
    "boxnet": Form(before=_moves_boxes),
    "calendar_arithmetic": Form("[+-]?[0-9]{1,9}|[A-Za-z]+"),
    "chain_sum": Form(_COMMAS),
    "codeio": Form(also=_same_json),
    "coin_flip": Form(rf"{_DIGITS}(?:\.{_DIGITS}|\s*/\s*{_DIGITS})?", also=_same_share),
    "complex_arithmetic": Form(rf"\(?\s*{_NUMBER}(?:\s*[+-]\s*[0-9.]{{1,60}}\s*i|\s*i)?\s*\)?"),
    "cryptarithm": Form(
        _list_of(r"[A-Z]\s*=\s*[0-9]"), before=lambda answer, _: max(Counter(re.findall("[A-Z]", answer)).values()) == 1
    ),
    "decimal_arithmetic": Form(_NUMBER, also=_same_decimal),
    "decimal_chain_sum": Form(_NUMBER),
    "figlet_font": Form(also=_same_letters),
    "fraction_simplification": Form(
        rf"\$?\s*(?:{_DIGITS}\s*/\s*{_DIGITS}|\\d?frac\s*{{\s*{_DIGITS}\s*}}\s*{{\s*{_DIGITS}\s*}})\s*\$?"
    ),
    "game_of_life": Form(r"[\[\]01,\s]+", also=_same_json),
    "game_of_life_halting": Form("True|False", also=_same_words),
    "graph_color": Form(_json_list(r'"[0-9]{1,6}"\s*:\s*[0-9]{1,6}', "{}"), before=_vertices_once),
    "group_anagrams": Form(before=_lists_of_lists),
    "gsm_symbolic": Form(_NUMBER, also=lambda answer, entry: float(answer) == float(entry["answer"])),
    "intermediate_integration": _INTEGRAL,
    "jugs": Form(_json_list('"(?:(?:fill|empty) [A-Z]|pour [A-Z]->[A-Z])"')),
    "kakurasu": Form(r"[01](?:\s+[01])*"),
    "knight_swap": Form("[Nn]o|" + _json_list('"[wB],[A-Z][0-9]{1,2},[A-Z][0-9]{1,2}"'), solves_above=0.05),
    "knights_knaves": Form(_list_of(_ROLE, "(?:, and |, | and )") + r"\.?"),
    "letter_jumble": Form(also=_same_words),
    "n_queens": Form(r"[Q_ \n]+"),
    "number_format": Form(
        _COMMAS + _EXPONENT,
        also=lambda answer, entry: abs(float(answer.replace(",", "")) - float(entry["metadata"]["solution"])) < 1e-5,
    ),
    "number_sorting": Form(
        _json_list(rf"(?:{_NUMBER}|'{_NUMBER}'|\"{_NUMBER}\")"),
        also=lambda answer, entry: _numbers(answer) == _numbers(str(entry["answer"])),
    ),
    "palindrome_partitioning": Form(before=_lists_of_lists),
    "polynomial_equations": Form(rf'(?:"")?|{_list_of(_NUMBER)}'),
    "polynomial_multiplication": Form(
        before=lambda answer, entry: is_polynomial_text(answer, set(re.findall("[A-Za-z]", str(entry["answer"]))))
    ),
    "pool_matrix": Form(r"[-0-9.]+(?:\s+[-0-9.]+)*", also=_same_cells),
    "power_function": Form(_NUMBER + _EXPONENT),
    "prime_factorization": Form(_list_of(_DIGITS, r"\s*×\s*")),
    "products": Form(_COMMAS),
    "propositional_logic": Form(r"[A-Z∨∧→↔¬()\s]+", before=_conclusion),
    "puzzle24": Form(before=lambda answer, _: parse(answer, "+-*/") is not None, also=_makes_24),
    "quantum_lock": Form(_list_of("[ABC]", r"\s*(?:→|->|,)\s*")),
    "rearc": Form(_GRID),
    "rectangle_count": Form("[0-9]{1,9}"),
    "rubiks_cube": Form(rf"(?:{_list_of(_TURN, _SPACE)})?"),
    "rush_hour": Form(_list_of(r"[A-Z][+-][0-9]", r"\s+")),
    "simple_integration": _INTEGRAL,
    "sokoban": Form("[UDLR]+"),
    "spell_backward": Form(also=_same_letters),
    "spiral_matrix": Form(_GRID),
    "string_insertion": Form("[A-Z]+"),
    "survo": Form(_GRID),
    "time_intervals": Form(
        r"[0-9]{1,6}(?: days?)?|(?:[0-9]{1,6} days?, )?[0-9]{1,2}:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{3})?)?"
    ),
    "tower_of_hanoi": Form(
        _list_of("Move disk [0-9]{1,3} from Peg [0-9]{1,3} to Peg [0-9]{1,3}", r"\s*\n\s*"), solves_above=0.05
    ),
    "word_ladder": Form(_list_of("[A-Za-z]+")),
    "word_sorting": Form(
        also=lambda answer, entry: answer.count(",") == str(entry["answer"]).count(",")
    ),  # the scorer reads no further
}
