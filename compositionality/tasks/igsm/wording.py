"""A problem in words: the names of its items, and two styles, English (*text*) and codes for tiny models (*compact*).

``b1a0=3*(b0a1+b2a0);…;b1a?``: each b1 has 3 times as many a0 as …; how many a in all has each b1?
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.draws import Draws
from compositionality.tasks.igsm.graph import LAYERS, Equation, Item, Quantity, QuantityGraph, expression_of

STYLES = ("text", "compact")
FILLER = "~"  # a line of these is neutral: no step of a compact completion
_INTRO = """Here is what is known of some {things}. What is not mentioned is not there.{arithmetic}

"""
_MODULUS = " All arithmetic is done modulo {}, from 0 to {}."
_TASK = """

{question} Work it out step by step, one quantity at a time. Close your answer with the number in \\boxed{{}}."""
BUILT_IN = Path(__file__).with_name("names.yaml")
LEAST_KINDS = 4
_WORD = re.compile(r"[A-Z][a-z]+")


@dataclass(frozen=True, slots=True)
class Category:
    """A noun, its plural, and lists of kinds of it."""

    noun: str
    plural: str
    kinds: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class LayerNames:
    """The names of one layer of a problem, by number."""

    noun: str
    plural: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a problem's items, the finest layer first."""

    layers: tuple[LayerNames, ...]

    def one(self, item: Item) -> str:
        """Return ``Oak Crate``."""
        layer = self.layers[item.layer]
        return f"{layer.kinds[item.number]} {layer.noun}"

    def many(self, item: Item) -> str:
        """Return ``Oak Crates``."""
        layer = self.layers[item.layer]
        return f"{layer.kinds[item.number]} {layer.plural}"

    def items(self) -> dict[str, Item]:
        """Return each item by either of its names."""
        every = [Item(place, number) for place, layer in enumerate(self.layers) for number in range(len(layer.kinds))]
        return {name: item for item in every for name in (self.one(item), self.many(item))}


def draw_names(draws: Draws, systems: Sequence[Sequence[Category]], layers: int) -> Names:
    """Draw a system, neighbouring categories of it, one list of kinds for each, in an order of its own."""
    system = draws.choice(systems)
    start = draws.below(len(system) - layers + 1)
    names = []
    for category in reversed(system[start : start + layers]):
        kinds = draws.shuffled(draws.choice(category.kinds))
        names.append(LayerNames(category.noun, category.plural, tuple(kinds)))
    return Names(tuple(names))


@lru_cache(maxsize=8)
def read_systems(path: str) -> tuple[tuple[Category, ...], ...]:
    """Read the naming systems of a file, ours for an empty path. UserError that names file and key of a fault."""
    from compositionality.yaml_files import read_yaml_mapping  # slow to import; a judge reads no such file

    place = Path(path) if path else BUILT_IN
    content = read_yaml_mapping(place)
    if not content:
        raise UserError(f"{place}: no naming system; give NAME: [four categories], as in {BUILT_IN.name}")
    systems = []
    system_of: dict[str, str] = {}
    for name, entries in content.items():
        if not isinstance(entries, list) or len(entries) != len(LAYERS):
            raise UserError(f"{place}: {name}: give {len(LAYERS)} categories, coarse to fine")
        system = tuple([_category(f"{place}: {name}[{number}]", entry) for number, entry in enumerate(entries)])
        for noun in [word for category in system for word in (category.noun, category.plural)]:
            if system_of.get(noun) == name:
                raise UserError(
                    f"{place}: {name}: {noun} stands for two things; give every category a noun and another plural"
                )
            if noun in system_of:
                raise UserError(f"{place}: {name}: {noun} is a category of {system_of[noun]} too; use another word")
            system_of[noun] = name
        systems.append(system)
    return tuple(systems)


def _category(where: str, entry: Any) -> Category:
    if not isinstance(entry, Mapping) or entry.keys() != {"noun", "plural", "kinds"}:
        raise UserError(f"{where}: give noun, plural and kinds")
    lists = entry["kinds"]
    if not isinstance(lists, list) or not lists or not all(isinstance(kinds, list) for kinds in lists):
        raise UserError(f"{where}: kinds: give lists of words")
    every_kind = [kind for kinds in lists for kind in kinds]
    words = [entry["noun"], entry["plural"], *every_kind]
    if bad := [word for word in words if not isinstance(word, str) or not _WORD.fullmatch(word)]:
        raise UserError(f"{where}: {bad[0]!r}: give one word of ASCII letters with a capital, as Oak")
    if twice := sorted({kind for kind in every_kind if every_kind.count(kind) > 1}):
        raise UserError(f"{where}: kinds: {twice[0]} is there twice; give every kind once")
    if short := [kinds for kinds in lists if len(kinds) < LEAST_KINDS]:
        raise UserError(f"{where}: kinds: {short[0]}: give at least {LEAST_KINDS} kinds in each list")
    return Category(entry["noun"], entry["plural"], tuple(map(tuple, lists)))


def phrase(quantity: Quantity, names: Names) -> str:
    """Return ``the number of Oak Crates in each Red Ship`` or ``the total number of Crates in each Red Ship``."""
    if quantity.is_abstract:
        counted = f"total number of {names.layers[quantity.layer].plural}"
    else:
        counted = f"number of {names.many(quantity.item)}"
    return f"the {counted} in each {names.one(quantity.owner)}"


def text_prompt(problem: QuantityGraph, names: Names) -> str:
    things = names.layers[-1].plural
    arithmetic = _MODULUS.format(problem.modulus, problem.modulus - 1) if problem.modulus else ""
    facts = "\n".join([f"{capital(premise(quantity, problem, names))}." for quantity in problem.equations])
    question = f"What is {phrase(problem.asked, names)}?"
    return _INTRO.format(things=things, arithmetic=arithmetic) + facts + _TASK.format(question=question)


def premise(quantity: Quantity, problem: QuantityGraph, names: Names) -> str:
    """Return what the text says of an instance, without its full stop."""
    return f"{phrase(quantity, names)} equals {_said(problem.equations[quantity], names)}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _said(equation: Equation, names: Names) -> str:
    """Return ``3 times the sum of … and …``."""
    parents = [phrase(parent, names) for parent in equation.parents]
    if len(parents) > 1:
        listed = f"{', '.join(parents[:-1])} and {parents[-1]}"
        parents = [
            f"the difference between {parents[0]} and {parents[1]}" if equation.minus else f"the sum of {listed}"
        ]
    if equation.constant is None:
        return parents[0]
    if not parents:
        return str(equation.constant)
    return f"{equation.constant} {'times' if equation.times else 'more than'} {parents[0]}"


def compact_prompt(problem: QuantityGraph) -> str:
    """Return ``%MODULUS`` if there is one, the equations, the quantity in question."""
    modulus = f"%{problem.modulus};" if problem.modulus else ""
    return f"{modulus}{''.join(f'{line};' for line in compact_equations(problem))}{problem.asked.code}?"


def compact_equations(problem: QuantityGraph) -> list[str]:
    """Return ``b1a0=3*(b0a1+b2a0)`` for each instance, in the order of the text."""
    return [f"{quantity.code}={compact(expression_of(equation))}" for quantity, equation in problem.equations.items()]


def compact(expression: Sequence[str | int | Quantity]) -> str:
    """Return an expression without blanks."""
    return "".join([part.code if isinstance(part, Quantity) else str(part) for part in expression])
