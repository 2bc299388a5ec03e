"""The parts of an iGSM problem: quantities, the equations that tie them together, and their values.

An *item* is one kind of thing in one layer (layer 0 is the finest). An *instance* quantity is how many of an item each
of an item of the next layer has; an *abstract* quantity is the total of a layer's items in each of a coarser item. The
equations of instances are what a problem states; those of abstracts follow from what holds what.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

LAYERS = "abcd"
_CODE = re.compile(r"([b-d])(\d)([a-d])(\d?)")


class Item(NamedTuple):
    layer: int
    number: int

    @property
    def code(self) -> str:
        """Return ``b1``: number 1 of layer b."""
        return f"{LAYERS[self.layer]}{self.number}"


class Quantity(NamedTuple):
    """The count of ``number`` of ``layer`` that each ``owner`` has; the layer's total where ``number`` is None."""

    owner: Item
    layer: int
    number: int | None = None

    @property
    def is_abstract(self) -> bool:
        return self.number is None

    @property
    def item(self) -> Item:
        """Return the item that is counted, of an instance."""
        assert self.number is not None
        return Item(self.layer, self.number)

    @property
    def code(self) -> str:
        """Return ``b1a0``, of an abstract ``b1a``."""
        return f"{self.owner.code}{LAYERS[self.layer]}{'' if self.number is None else self.number}"


def read_quantity(code: str) -> Quantity | None:
    match = _CODE.fullmatch(code)
    if not match or match[1] <= match[3]:
        return None
    owner = Item(LAYERS.index(match[1]), int(match[2]))
    layer = LAYERS.index(match[3])
    if not match[4]:
        return Quantity(owner, layer)
    return Quantity(owner, layer, int(match[4])) if layer == owner.layer - 1 else None


@dataclass(frozen=True, slots=True)
class Equation:
    """The value of an instance: ``constant`` more than, or times, the sum of ``parents`` (their difference: ``minus``).

    At least one of constant and parents is there; ``minus`` goes with two parents, ``times`` with constant and parents.
    """

    constant: int | None = None
    parents: tuple[Quantity, ...] = ()
    times: bool = False
    minus: bool = False


Expression = tuple["str | int | Quantity", ...]
"""Signs ``+ - * ( )``, whole numbers and quantities, as they are written."""


@dataclass(frozen=True)
class QuantityGraph:
    """``equations`` of all instances that are stated, in the order of the text; ``asked``: the quantity in question.

    ``order``: the necessary quantities, each after those that it depends on, the asked one last. ``modulus`` 0: plain
    whole numbers.
    """

    equations: Mapping[Quantity, Equation]
    asked: Quantity
    order: tuple[Quantity, ...]
    modulus: int = 0

    @cached_property
    def children(self) -> dict[Item, tuple[Item, ...]]:
        return children_of(self.equations)

    def parents(self, quantity: Quantity) -> tuple[Quantity, ...]:
        return quantities_in(self.expression(quantity))

    def expression(self, quantity: Quantity) -> Expression:
        if quantity.is_abstract:
            return expression_of_total(quantity, self.children)
        return expression_of(self.equations[quantity])

    @cached_property
    def answer(self) -> int:
        values: dict[Quantity, int] = {}
        for quantity in self.order:
            values[quantity] = evaluate(numbers_in(self.expression(quantity), values), self.modulus)
        return values[self.asked]

    @property
    def level(self) -> int:
        """Return the binary operations of all necessary equations, at least one of each: the paper's count."""
        terms = [sum(not isinstance(part, str) for part in self.expression(quantity)) for quantity in self.order]
        return sum(max(1, count - 1) for count in terms)


def children_of(instances: Iterable[Quantity]) -> dict[Item, tuple[Item, ...]]:
    """Return what each item holds directly, in order."""
    held: dict[Item, list[Item]] = {}
    for quantity in sorted(instances):
        held.setdefault(quantity.owner, []).append(quantity.item)
    return {owner: tuple(items) for owner, items in held.items()}


def expression_of(equation: Equation) -> Expression:
    """Return ``7 * ( p + q )``: the constant, then the parents."""
    sign = "-" if equation.minus else "+"
    parents = [part for parent in equation.parents for part in (sign, parent)][1:]
    if equation.constant is None:
        return tuple(parents)
    if not parents:
        return (equation.constant,)
    inner = ["(", *parents, ")"] if len(parents) > 1 else parents
    return (equation.constant, "*" if equation.times else "+", *inner)


def expression_of_total(quantity: Quantity, children: Mapping[Item, Sequence[Item]]) -> Expression:
    """Return the sum over what the owner holds: of the layer itself, or number times total of a layer further down."""
    parts: list[str | int | Quantity] = []
    for item in children.get(quantity.owner, ()):
        direct = Quantity(quantity.owner, item.layer, item.number)
        parts += ["+", direct] if item.layer == quantity.layer else ["+", direct, "*", Quantity(item, quantity.layer)]
    return tuple(parts[1:])


def quantities_in(expression: Expression) -> tuple[Quantity, ...]:
    return tuple([part for part in expression if isinstance(part, Quantity)])


def numbers_in(expression: Expression, values: Mapping[Quantity, int]) -> Expression:
    """Return the expression with values for quantities. KeyError for one that has none."""
    return tuple([values[part] if isinstance(part, Quantity) else part for part in expression])


def evaluate(expression: Expression, modulus: int = 0) -> int:
    (value,) = steps_of(expression, modulus)[-1] if len(expression) > 1 else expression
    assert isinstance(value, int)
    return value % modulus if modulus else value


def steps_of(expression: Expression, modulus: int = 0) -> list[Expression]:
    """Return the expression after each operation, down to its value: in parentheses first, then products, then sums."""
    steps: list[Expression] = []
    parts = list(expression)
    while len(parts) > 1:
        start, end = (parts.index("("), parts.index(")")) if "(" in parts else (0, len(parts))
        signs = [place for place in range(start, end) if parts[place] in ("*", "+", "-")]
        place = next((place for place in signs if parts[place] == "*"), signs[0])
        left, sign, right = parts[place - 1 : place + 2]
        assert isinstance(left, int)
        assert isinstance(right, int)
        value = left * right if sign == "*" else left + right if sign == "+" else left - right
        before, after = place - 1, place + 2
        if before and after < len(parts) and (parts[before - 1], parts[after]) == ("(", ")"):
            before, after = before - 1, after + 1
        parts[before:after] = [value % modulus if modulus else value]
        steps.append(tuple(parts))
    return steps
