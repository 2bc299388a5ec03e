r"""Judging a completion: its final answer, and where the row asks for it the chain of the whole response.

*text*: the number in the last closed ``\boxed{…}`` or ``<answer>…</answer>``. *compact*: the number after the last
``=`` of the last line, which must be about the quantity in question. A number is written in plain digits, perhaps with
a minus in front.

A chain is right if every quantity that it works out is one of the problem's, not known before, depends on what the
problem says and on quantities worked out above it, and if every form of its equation has its true value. A quantity
that is tried in vain must really wait for all that it is said to wait for. In English a step is a bullet, or any line
with an equation; beside its equation and its true premise it states no number and names no other quantity.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.answers import CLOSE, OPEN, box_span, last_between
from compositionality.tasks.arithmetic import parse, value_of
from compositionality.tasks.igsm.graph import (
    Equation,
    Expression,
    Item,
    Quantity,
    QuantityGraph,
    evaluate,
    numbers_in,
    read_quantity,
)
from compositionality.tasks.igsm.wording import FILLER, STYLES, LayerNames, Names, compact_equations, premise
from compositionality.types import Reason, Verdict

MAX_LINES = 200
LONGEST_LINE = 2000
_CODE = re.compile(r"[b-d]\d[a-d]\d?")
_COMPACT = re.compile(r"([b-d]\d[a-d]\d?)(=|\?)(.+)")
_PHRASE = re.compile(
    r"the (total )?number of ([A-Z][a-z]+(?: [A-Z][a-z]+)?) in each ([A-Z][a-z]+ [A-Z][a-z]+)", re.IGNORECASE
)
_LETTER = re.compile(
    r"\b(?:Let ([A-Za-z]) be|call it ([A-Za-z])|is called ([A-Za-z])|(?:Back to|Now for|Again) ([A-Za-z]),)"
)
_CHAIN = re.compile(r"(?:^|[.:] )([A-Za-z]) = ([^=]+(?: = [^=]+)*)\.$")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})", re.ASCII)
_CLAIM = re.compile(r"[\d=]")
_SYMBOL = re.compile(r"[A-Za-z]")
_RIGHT = re.compile(r"(?:(\d{1,4})(?:([*+])(?=[(a-d])|$))?\(?((?:[b-d]\d[a-d]\d?[+-]?)*)\)?")


# ---- the ground truth of a row


@dataclass(frozen=True)
class IgsmTruth:
    """The answer and the quantity in question; for judging the whole chain also the problem and its names."""

    answer: int
    style: str
    asked: str
    problem: QuantityGraph | None = None
    names: Names | None = None


def ground_truth(problem: QuantityGraph, names: Names | None, *, process: bool) -> str:
    """Return the JSON text that the judge reads; the compact style has no names."""
    style = "text" if names else "compact"
    content: dict[str, Any] = {"answer": problem.answer, "asked": problem.asked.code, "style": style}
    if process:
        content |= graph_of(problem, names)
    return json.dumps(content)


def graph_of(problem: QuantityGraph, names: Names | None) -> dict[str, Any]:
    """Return the problem as JSON: equations in the order of the text, the order of the solution, modulus, names."""
    layers = [[layer.noun, layer.plural, *layer.kinds] for layer in names.layers] if names else []
    return {
        "facts": compact_equations(problem),
        "order": [quantity.code for quantity in problem.order],
        "modulus": problem.modulus,
        **({"names": layers} if layers else {}),
    }


@lru_cache(maxsize=4096)
def read_ground_truth(text: str) -> IgsmTruth:
    """Return the truth in the JSON text of a row; UserError if it is damaged."""
    try:
        content = json.loads(text)
        truth = IgsmTruth(content["answer"], content["style"], content["asked"], *read_graph(content))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise UserError(f"ground_truth {text[:80]!r} is damaged ({error!r}); make the problem file again") from error
    if type(truth.answer) is not int or truth.style not in STYLES or read_quantity(truth.asked) is None:
        raise UserError(f"ground_truth {text[:80]!r}: needs a whole answer, a style and what is asked for")
    return truth


def read_graph(content: Mapping[str, Any]) -> tuple[QuantityGraph | None, Names | None]:
    """Read what ``graph_of`` wrote; none where it did not. ValueError, KeyError or the like for what it cannot be."""
    if "facts" not in content:
        return None, None
    order = tuple(_quantity(code) for code in content["order"])
    facts = dict(_equation(line) for line in content["facts"])
    problem = QuantityGraph(facts, order[-1], order, int(content["modulus"]))
    layers = [LayerNames(noun, plural, tuple(kinds)) for noun, plural, *kinds in content.get("names", [])]
    return problem, Names(tuple(layers)) if layers else None


def _quantity(code: str) -> Quantity:
    quantity = read_quantity(code)
    if quantity is None:
        raise ValueError(f"{code} is no quantity")
    return quantity


def _equation(line: str) -> tuple[Quantity, Equation]:
    left, _, right = line.partition("=")
    match = _RIGHT.fullmatch(right)
    if not match or not (match[1] or match[3]):
        raise ValueError(f"{line} is no equation")
    parents = tuple(_quantity(code) for code in _CODE.findall(match[3]))
    return _quantity(left), Equation(int(match[1]) if match[1] else None, parents, match[2] == "*", "-" in right)


# ---- the chain


class ChainFault(StrEnum):
    UNREADABLE = "unreadable"  # a line is no step
    UNKNOWN = "unknown_quantity"  # the problem has no such quantity
    AGAIN = "defined_again"  # it is known already, or its letter stands for another
    TOO_EARLY = "used_before_known"
    DEPENDENCIES = "other_dependencies"  # other quantities or numbers than the problem says
    ARITHMETIC = "wrong_value"
    NOT_BLOCKED = "not_blocked"  # given up without need
    UNFINISHED = "question_not_reached"


@dataclass(frozen=True, slots=True)
class Line:
    """One step as it was written: ``forms`` of the equation after the quantity, or none and what it waits for."""

    quantity: Quantity | None
    letter: str
    forms: tuple[str, ...] = ()
    awaited: tuple[Quantity | None, ...] = ()


@dataclass(slots=True)
class Chain:
    """The state while a completion is read."""

    problem: QuantityGraph
    values: dict[Quantity, int] = field(default_factory=dict)
    symbols: dict[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """The first fault of a chain, with the number of its line from 1 on and its quantity; no fault: a right chain."""

    fault: ChainFault | None = None
    line: int = 0
    quantity: Quantity | None = None


def check_chain(text: str, problem: QuantityGraph, names: Names | None) -> Finding:
    """Return the first fault in the chain of a completion; never raises, linear in its length."""
    chain = Chain(problem)
    number = 0
    for number, line in enumerate(read_lines(text, problem, names), 1):
        fault = _fault(line, chain) if line and number <= MAX_LINES else ChainFault.UNREADABLE
        if fault:
            return Finding(fault, number, line.quantity if line else None)
    if next(reversed(chain.values), None) != problem.asked:
        return Finding(ChainFault.UNFINISHED, number + 1, problem.asked)
    return Finding()


def read_lines(text: str, problem: QuantityGraph, names: Names | None) -> Iterator[Line | None]:
    """Yield the steps of a completion in the compact style (no ``names``) or in English; None for any other line."""
    lines = text.split("\n")
    if names is None:
        yield from (_compact_line(line) for line in lines if line.strip(FILLER))
        return
    items = names.items()
    categories = {word: place for place, layer in enumerate(names.layers) for word in (layer.noun, layer.plural)}
    premises = {quantity: premise(quantity, problem, names) for quantity in problem.equations}
    for line in lines:
        if line.startswith("- ") or "=" in line:
            yield _text_line(line, items, categories, premises)


def _compact_line(text: str) -> Line | None:
    match = _COMPACT.fullmatch(text) if len(text) <= LONGEST_LINE else None
    if not match:
        return None
    code, sign, rest = match.groups()
    if sign == "=":
        return Line(read_quantity(code), code, tuple(rest.split("=")))
    return Line(read_quantity(code), code, awaited=tuple(map(read_quantity, rest.split(","))))


def _text_line(
    text: str, items: Mapping[str, Item], categories: Mapping[str, int], premises: Mapping[Quantity, str]
) -> Line | None:
    phrase = _PHRASE.search(text) if len(text) <= LONGEST_LINE else None
    named = _LETTER.search(text)
    if not phrase or not named:
        return None
    letter = next(filter(None, named.groups()))
    chain = _CHAIN.search(text)
    quantity = _named(phrase, items, categories)
    claims = text[: chain.start() if chain else None]
    if quantity and quantity in premises:
        claims = claims.replace(premises[quantity], "")
    first, *others = [_named(other, items, categories) for other in _PHRASE.finditer(claims)] or [None]
    if first != quantity or _CLAIM.search(claims) or (chain and (others or chain[1] != letter)):
        return None
    return Line(quantity, letter, tuple(chain[2].split(" = ")) if chain else (), tuple(others))


def _named(phrase: re.Match[str], items: Mapping[str, Item], categories: Mapping[str, int]) -> Quantity | None:
    total, counted, owner = phrase.groups()
    holder = items.get(owner)
    if holder is None:
        return None
    if total:
        layer = categories.get(counted)
        return Quantity(holder, layer) if layer is not None and layer < holder.layer else None
    item = items.get(counted)
    return Quantity(holder, *item) if item and item.layer == holder.layer - 1 else None


def _fault(line: Line, chain: Chain) -> ChainFault | None:
    quantity, problem = line.quantity, chain.problem
    if quantity is None or not (problem.parents(quantity) if quantity.is_abstract else quantity in problem.equations):
        return ChainFault.UNKNOWN
    if chain.symbols.setdefault(line.letter, quantity) != quantity or quantity in chain.values:
        return ChainFault.AGAIN
    missing = [parent for parent in problem.parents(quantity) if parent not in chain.values]
    if not line.forms:
        return None if line.awaited and set(line.awaited) <= set(missing) else ChainFault.NOT_BLOCKED
    if missing:
        return ChainFault.TOO_EARLY
    numbers = numbers_in(problem.expression(quantity), chain.values)
    fault = _wrong_forms(line, numbers, set(problem.parents(quantity)), chain)
    if fault is None:
        chain.values[quantity] = evaluate(numbers, problem.modulus)
    return fault


def _wrong_forms(line: Line, numbers: Expression, parents: set[Quantity], chain: Chain) -> ChainFault | None:
    """Check the forms of an equation: symbols, then numbers, then what some operations leave, then the value.

    The first may be numbers in the compact style only. The whole equation has its value before it is reduced by the
    modulus, too: 1*(5+5) is not 1*(5-5).
    """
    modulus = chain.problem.modulus
    value, terms = evaluate(numbers, modulus), sizes_of(numbers)
    starts_with_names = False
    for place, form in enumerate(line.forms):
        readable = _with_values(form, chain)
        if readable is None:
            return ChainFault.TOO_EARLY
        quantities, text = readable
        must_name = bool(quantities) or (not place and _SYMBOL.fullmatch(line.letter))
        if must_name and (place or set(quantities) != parents):
            return ChainFault.DEPENDENCIES
        postfix = parse(text, "+-*")
        if postfix is None:
            return ChainFault.UNREADABLE
        starts_with_names |= not place and bool(quantities)
        is_whole_equation = not place or (place == 1 and starts_with_names)
        if is_whole_equation and sizes_of(postfix) != terms:
            return ChainFault.DEPENDENCIES
        result = value_of(postfix)
        if result is None or (is_whole_equation and result != evaluate(numbers)):
            return ChainFault.ARITHMETIC
        if (result % modulus if modulus else result) != value:
            return ChainFault.ARITHMETIC
    return None if line.forms[-1].strip() == str(value) else ChainFault.ARITHMETIC


def _with_values(form: str, chain: Chain) -> tuple[list[Quantity], str] | None:
    """Return the quantities that a form names, by code or by letter, and the form with their values in parentheses.

    None if it names one that is not known.
    """
    pattern = _CODE if _CODE.search(form) else _SYMBOL
    named = [read_quantity(symbol) or chain.symbols.get(symbol) for symbol in pattern.findall(form)]
    quantities = [quantity for quantity in named if quantity in chain.values]
    if len(quantities) < len(named):
        return None
    values = iter([chain.values[quantity] for quantity in quantities])
    return quantities, pattern.sub(lambda _: f"({next(values)})", form)


def sizes_of(tokens: Sequence[object]) -> Counter[int]:
    """Return the numbers among tokens without their signs, each as often as it occurs."""
    return Counter(abs(token) for token in tokens if isinstance(token, int))


# ---- the answer


def judge_igsm(answer_text: str, ground_truth: str) -> Verdict:
    """Judge the number after the last ``=`` of the last line, or in the last box or answer tag that is closed."""
    truth = read_ground_truth(ground_truth)
    if truth.style == "compact":
        line = answer_text.rpartition("\n")[2]
        answer = line.rpartition("=")[2] if line.startswith(f"{truth.asked}=") else None
    else:
        start, inside = max(last_between(answer_text, "\\boxed{", "}"), last_between(answer_text, OPEN, CLOSE))
        box_start, box_end = box_span(answer_text)
        box = answer_text[box_start:box_end].strip() if box_start <= start < box_end else ""  # around the answer
        holds_more = box not in ("", f"{OPEN}{inside}{CLOSE}")
        answer = (box if holds_more else inside.strip(" \n")) or None
    if answer is None:
        return Verdict(0.0, Reason.NO_ANSWER)
    if not _NUMBER.fullmatch(answer):
        return Verdict(0.0, Reason.MALFORMED, answer[:100])
    if int(answer) != truth.answer or answer == "-0":
        return Verdict(0.0, Reason.WRONG, answer)
    return Verdict(1.0, Reason.CORRECT, answer)
