"""What an iGSM problem is: quantities, the equations that tie them together, and their values.

An *item* is one kind of thing in one layer (layer 0 is the finest). An *instance* quantity is how many of an item each
of an item of the next layer has; an *abstract* quantity is the total of a layer's items in each of a coarser item. The
equations of instances are what a problem states; those of abstracts follow from what holds what.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

LAYERS = "abcd"
_CODE = re.compile(r"([b-d])(\d)([a-d])(\d?)")


class Item(NamedTuple):
    """One kind of thing."""

    layer: int
    number: int

    @property
    def code(self) -> str:
        """Return ``b1``: number 1 of layer b."""
        return f"{LAYERS[self.layer]}{self.number}"


class Quantity(NamedTuple):
    """How many ``number`` of ``layer`` each ``owner`` has; the total of the layer where ``number`` is None."""

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


def quantity(code: str) -> Quantity | None:
    """Return the quantity with this code; None if there is none."""
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
    """What an instance equals: ``constant`` more than, or times, the sum of ``parents`` (their difference: ``minus``).

    At least one of constant and parents is there; ``minus`` goes with two parents, ``times`` with constant and parents.
    """

    constant: int | None = None
    parents: tuple[Quantity, ...] = ()
    times: bool = False
    minus: bool = False

    @property
    def operations(self) -> int:
        """Return the number of binary operations, at least one: the paper's count."""
        return max(1, len(self.parents) + (self.constant is not None) - 1)


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
    children: Mapping[Item, tuple[Item, ...]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "children", children_of(self.equations))

    def parents(self, one: Quantity) -> tuple[Quantity, ...]:
        """Return the quantities that its equation names."""
        return tuple(part for part in self.expression(one) if isinstance(part, Quantity))

    def expression(self, one: Quantity) -> Expression:
        """Return the right side of its equation."""
        return expression_of_total(one, self.children) if one.is_abstract else expression_of(self.equations[one])

    def operations(self, one: Quantity) -> int:
        """Return the number of binary operations of its equation, at least one."""
        if one.is_abstract:
            return max(1, len(self.parents(one)) - 1)
        return self.equations[one].operations

    def values(self) -> dict[Quantity, int]:
        """Return the value of every necessary quantity."""
        values: dict[Quantity, int] = {}
        for one in self.order:
            values[one] = evaluate(numbers_in(self.expression(one), values), self.modulus)
        return values

    @property
    def answer(self) -> int:
        return self.values()[self.asked]

    @property
    def level(self) -> int:
        """Return the operations of all necessary quantities."""
        return sum(map(self.operations, self.order))


def children_of(instances: Iterable[Quantity]) -> dict[Item, tuple[Item, ...]]:
    """Return what each item holds directly, in order."""
    held: dict[Item, list[Item]] = {}
    for one in sorted(instances):
        held.setdefault(one.owner, []).append(one.item)
    return {owner: tuple(items) for owner, items in held.items()}


def expression_of(equation: Equation) -> Expression:
    """Return ``7 * ( p + q )``: the constant, then the parents."""
    sign = "-" if equation.minus else "+"
    parents = [part for parent in equation.parents for part in (sign, parent)][1:]
    if equation.constant is None or not parents:
        return tuple(parents) if parents else (_known(equation.constant),)
    inner = ["(", *parents, ")"] if len(parents) > 1 else parents
    return (equation.constant, "*" if equation.times else "+", *inner)


def _known(constant: int | None) -> int:
    assert constant is not None
    return constant


def expression_of_total(one: Quantity, children: Mapping[Item, Sequence[Item]]) -> Expression:
    """Return the sum over what the owner holds: of the layer itself, or number times total of a layer further down."""
    parts: list[str | int | Quantity] = []
    for item in children.get(one.owner, ()):
        direct = Quantity(one.owner, item.layer, item.number)
        parts += ["+", direct] if item.layer == one.layer else ["+", direct, "*", Quantity(item, one.layer)]
    return tuple(parts[1:])


def numbers_in(expression: Expression, values: Mapping[Quantity, int]) -> Expression:
    """Return the expression with values for quantities. KeyError for one that has none."""
    return tuple(values[part] if isinstance(part, Quantity) else part for part in expression)


def evaluate(expression: Expression, modulus: int = 0) -> int:
    """Return the value of an expression of numbers."""
    return reductions(expression, modulus)[-1]


def reductions(expression: Expression, modulus: int = 0) -> list[int]:
    """Return the results of its operations one after the other: in parentheses first, then products, then sums."""
    return [value for _, value in _reduced(expression, modulus)] or [_wrapped(_only(expression), modulus)]


def steps_of(expression: Expression, modulus: int = 0) -> list[Expression]:
    """Return the expression after each operation, down to its value."""
    return [shorter for shorter, _ in _reduced(expression, modulus)]


def _only(expression: Expression) -> int:
    (value,) = expression
    assert isinstance(value, int)
    return value


def _wrapped(value: int, modulus: int) -> int:
    return value % modulus if modulus else value


def _reduced(expression: Expression, modulus: int) -> list[tuple[Expression, int]]:
    found, parts = [], list(expression)
    while len(parts) > 1:
        place = _next_operation(parts)
        left, sign, right = parts[place - 1 : place + 2]
        assert isinstance(left, int)
        assert isinstance(right, int)
        value = _wrapped(left * right if sign == "*" else left + right if sign == "+" else left - right, modulus)
        start, end = place - 1, place + 2
        if start and end < len(parts) and (parts[start - 1], parts[end]) == ("(", ")"):
            start, end = start - 1, end + 1
        parts[start:end] = [value]
        found.append((tuple(parts), value))
    return found


def _next_operation(parts: Sequence[str | int | Quantity]) -> int:
    """Return where the sign of the operation stands that is due."""
    start, end = (parts.index("("), parts.index(")")) if "(" in parts else (0, len(parts))
    inside = range(start, end)
    return (
        next((place for place in inside if parts[place] == "*"), -1)
        if "*" in parts[start:end]
        else next(place for place in inside if parts[place] in ("+", "-"))
    )
