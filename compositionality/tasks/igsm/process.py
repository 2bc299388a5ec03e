"""Reading a completion line by line, and the first fault in its chain: the process judge.

A chain is right if every quantity that it works out is one of the problem's, not known before, depends on what the
problem says and on quantities worked out above it, and if every form of its equation has its true value. A quantity
that is tried in vain must really wait for something.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from compositionality.tasks.arithmetic import is_legal, to_postfix, tokenize, value_of
from compositionality.tasks.igsm.graph import Item, Quantity, QuantityGraph, evaluate, numbers_in, quantity
from compositionality.tasks.igsm.names import Names

FILLER = "~"
"""A line of these is neutral: no step of a compact completion."""
MOST_LINES = 200
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
_SYMBOL = re.compile(r"[A-Za-z]")


class ChainFault(StrEnum):
    """What is wrong first."""

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
    """One step as it was written: ``forms`` of the equation after the quantity, or what it waits for."""

    quantity: Quantity | None
    letter: str = ""
    forms: tuple[str, ...] = ()
    waits: bool = False


@dataclass(slots=True)
class Chain:
    """What is known while a completion is read."""

    problem: QuantityGraph
    values: dict[Quantity, int] = field(default_factory=dict)
    symbols: dict[str, Quantity] = field(default_factory=dict)
    solved: list[Quantity] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Finding:
    """The first fault of a chain, with the number of its line from 1 on and its quantity; no fault: a right chain."""

    fault: ChainFault | None = None
    line: int = 0
    quantity: Quantity | None = None


def check_chain(text: str, problem: QuantityGraph, names: Names | None) -> Finding:
    """The first fault in the chain of a completion; never raises, linear in its length."""
    chain = Chain(problem)
    number = 0
    for number, line in enumerate(read_lines(text, names), 1):
        fault = _fault(line, chain) if line and number <= MOST_LINES else ChainFault.UNREADABLE
        if fault:
            return Finding(fault, number, line.quantity if line else None)
    if problem.asked not in chain.values or chain.solved[-1] != problem.asked:
        return Finding(ChainFault.UNFINISHED, number + 1, problem.asked)
    return Finding()


def read_lines(text: str, names: Names | None) -> Iterator[Line | None]:
    """The steps of a completion in the compact style (no ``names``) or in English; None for a line that is none."""
    if names is None:
        yield from (_compact_line(line) for line in text.split("\n") if line.strip(FILLER))
        return
    items = names.items()
    categories = {word: place for place, layer in enumerate(names.layers) for word in (layer.noun, layer.plural)}
    yield from (_text_line(line, items, categories) for line in text.split("\n") if line.startswith("- "))


def _compact_line(text: str) -> Line | None:
    found = _COMPACT.fullmatch(text) if len(text) <= LONGEST_LINE else None
    if not found:
        return None
    one, codes = quantity(found[1]), tuple(found[3].split("=" if found[2] == "=" else ","))
    return Line(one, found[1], codes, waits=found[2] == "?")


def _text_line(text: str, items: Mapping[str, Item], categories: Mapping[str, int]) -> Line | None:
    phrase = _PHRASE.search(text) if len(text) <= LONGEST_LINE else None
    named = _LETTER.search(text)
    if not phrase or not named:
        return None
    letter = next(filter(None, named.groups()))
    chain = _CHAIN.search(text)
    if chain and chain[1] != letter:
        return None
    forms = tuple(chain[2].split(" = ")) if chain else ()
    return Line(_named(phrase, items, categories), letter, forms, waits=not chain)


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
    one, problem = line.quantity, chain.problem
    if one is None or not _is_of(one, problem):
        return ChainFault.UNKNOWN
    known = chain.symbols.setdefault(line.letter, one)
    if known != one or one in chain.values:
        return ChainFault.AGAIN
    missing = [parent for parent in problem.parents(one) if parent not in chain.values]
    if line.waits:
        return None if missing else ChainFault.NOT_BLOCKED
    if missing:
        return ChainFault.TOO_EARLY
    fault = _wrong_forms(line.forms, one, chain)
    if fault is None:
        chain.values[one] = evaluate(numbers_in(problem.expression(one), chain.values), problem.modulus)
        chain.solved.append(one)
    return fault


def _is_of(one: Quantity, problem: QuantityGraph) -> bool:
    return bool(problem.parents(one)) if one.is_abstract else one in problem.equations


def _wrong_forms(forms: Sequence[str], one: Quantity, chain: Chain) -> ChainFault | None:
    """The forms of an equation: symbols, then numbers, then what is left after some operations, then the value."""
    problem, parents = chain.problem, set(chain.problem.parents(one))
    numbers = numbers_in(problem.expression(one), chain.values)
    value, terms = evaluate(numbers, problem.modulus), sizes_of(numbers)
    for place, form in enumerate(forms):
        quantities = symbols_in(form, chain.symbols)
        if quantities is None or any(other not in chain.values for other in quantities):
            return ChainFault.TOO_EARLY
        if quantities and (place or set(quantities) != parents):
            return ChainFault.DEPENDENCIES
        tokens = tokenize(with_values(form, chain))
        if tokens is None or not is_legal(tokens, "+-*"):
            return ChainFault.UNREADABLE
        is_whole_equation = not place or (place == 1 and bool(symbols_in(forms[0], chain.symbols)))
        if is_whole_equation and sizes_of(tokens) != terms:
            return ChainFault.DEPENDENCIES
        found = value_of(to_postfix(tokens))
        if found is None or (found % problem.modulus if problem.modulus else found) != value:
            return ChainFault.ARITHMETIC
    return None if forms and forms[-1].strip() == str(value) else ChainFault.ARITHMETIC


def sizes_of(tokens: Sequence[object]) -> Counter[int]:
    """The numbers among tokens without their signs, each as often as it is there."""
    return Counter(abs(token) for token in tokens if isinstance(token, int))


def symbols_in(form: str, symbols: Mapping[str, Quantity]) -> list[Quantity] | None:
    """The quantities that a form names, by code or by letter; None if one has no meaning yet."""
    codes = _CODE.findall(form)
    if codes:
        found = [quantity(code) for code in codes]
        return None if None in found else [one for one in found if one]
    letters = _SYMBOL.findall(form)
    return [symbols[letter] for letter in letters] if all(letter in symbols for letter in letters) else None


def with_values(form: str, chain: Chain) -> str:
    """The form with values for quantities, in parentheses."""

    def value(found: re.Match[str]) -> str:
        one = quantity(found[0]) or chain.symbols[found[0]]
        return f"({chain.values[one]})"

    return (_CODE if _CODE.search(form) else _SYMBOL).sub(value, form)
