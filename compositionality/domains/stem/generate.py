"""Short questions of science with a computed answer; the level is how many formulas are chained.

A chain is a quotient, then a product with each further quantity (in biology: doublings). A question of level k asks for
k formulas in a row, from any place of its chain on.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from compositionality.errors import UserError
from compositionality.tasks.stream import check_choice

if TYPE_CHECKING:
    from compositionality.tasks.draws import Draws

KINDS = ("choice", "free")
OPTIONS = "ABCD"
DEPTH = 3


@dataclass(frozen=True)
class StemOptions:
    """Multiple choice, or a number in a box; formulas by level."""

    kind: str = "choice"  # of answer: choice or free
    levels: tuple[int, ...] = (1, 2, 3)  # formulas

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        if not self.levels or len(set(self.levels)) < len(self.levels) or not set(self.levels) <= {1, 2, 3}:
            raise UserError(f"levels={list(self.levels)}: give different whole numbers from 1 to {DEPTH}")


class PhysicalQuantity(NamedTuple):
    """A quantity by name, with its unit."""

    name: str
    unit: str

    def written(self, value: int) -> str:
        """Name, value and unit."""
        return f"{self.name} = {value} {self.unit}".rstrip()


class FormulaChain(NamedTuple):
    """``results[0]`` is dividend / divisor; each later result is the one before it times its factor.

    ``doubling``: the first result is a number of doublings, and results[1] is factors[0] times 2 to its power.
    """

    setting: str
    dividend: PhysicalQuantity
    divisor: PhysicalQuantity
    results: tuple[PhysicalQuantity, PhysicalQuantity, PhysicalQuantity]
    factors: tuple[PhysicalQuantity, PhysicalQuantity]
    doubling: bool = False


CHAINS = (
    FormulaChain(
        "A cart on a straight track speeds up at a constant rate, without friction.",
        PhysicalQuantity("gain in speed", "m/s"),
        PhysicalQuantity("time for that gain", "s"),
        (
            PhysicalQuantity("acceleration", "m/s^2"),
            PhysicalQuantity("net force", "N"),
            PhysicalQuantity("work done by the net force", "J"),
        ),
        (PhysicalQuantity("mass", "kg"), PhysicalQuantity("distance along the force", "m")),
    ),
    FormulaChain(
        "A resistor and a lamp are connected in series.",
        PhysicalQuantity("voltage across the resistor", "V"),
        PhysicalQuantity("resistance", "ohm"),
        (
            PhysicalQuantity("current", "A"),
            PhysicalQuantity("charge that flows", "C"),
            PhysicalQuantity("energy that the lamp takes up", "J"),
        ),
        (PhysicalQuantity("time", "s"), PhysicalQuantity("voltage across the lamp", "V")),
    ),
    FormulaChain(
        "Waves run over a lake.",
        PhysicalQuantity("number of waves that pass a post", ""),
        PhysicalQuantity("time in which they pass", "s"),
        (
            PhysicalQuantity("frequency", "Hz"),
            PhysicalQuantity("wave speed", "m/s"),
            PhysicalQuantity("distance that a crest travels", "m"),
        ),
        (PhysicalQuantity("wavelength", "m"), PhysicalQuantity("travel time", "s")),
    ),
    FormulaChain(
        "A pure substance reacts completely, and its only product is a gas.",
        PhysicalQuantity("mass of the substance", "g"),
        PhysicalQuantity("molar mass of the substance", "g/mol"),
        (
            PhysicalQuantity("amount of the substance", "mol"),
            PhysicalQuantity("amount of gas", "mol"),
            PhysicalQuantity("volume of gas", "L"),
        ),
        (
            PhysicalQuantity("moles of gas for each mole of the substance", ""),
            PhysicalQuantity("molar volume of the gas", "L/mol"),
        ),
    ),
    FormulaChain(
        "Bacteria divide at a constant rate, and none die.",
        PhysicalQuantity("time of growth", "min"),
        PhysicalQuantity("time for one doubling", "min"),
        (
            PhysicalQuantity("number of doublings", ""),
            PhysicalQuantity("number of cells at the end", ""),
            PhysicalQuantity("sugar that the cells at the end use in an hour", "pg"),
        ),
        (
            PhysicalQuantity("number of cells at the start", ""),
            PhysicalQuantity("sugar that one cell uses in an hour", "pg"),
        ),
        doubling=True,
    ),
)


class StemItem(NamedTuple):
    """A question before it is put into words: the chain by number, its formulas from ``start`` on, and the values.

    ``values`` are those of the given quantities in the order in which they are used.
    """

    chain: int
    start: int
    formulas: int
    values: tuple[int, ...]


def draw_item(level: int, draws: "Draws") -> StemItem:
    """Values that make every result a whole number."""
    number, start = draws.below(len(CHAINS)), draws.below(DEPTH - level + 1)
    chain = CHAINS[number]
    values: list[int] = []
    for formula in range(start, start + level):
        if formula == 0:
            divisor = draws.between(2, 30)
            values += [draws.between(2, 9 if chain.doubling else 30) * divisor, divisor]
            continue
        if formula == start:
            values.append(draws.between(2, 9 if chain.doubling and formula == 1 else 60))
        values.append(draws.between(2, 40))
    return StemItem(number, start, level, tuple(values))


def solve_item(item: StemItem) -> list[int]:
    """The result of each formula in its order."""
    chain, values, results = CHAINS[item.chain], list(item.values), list[int]()
    value = values.pop(0)
    for formula in range(item.start, item.start + item.formulas):
        operand = values.pop(0)
        if formula == 0:
            value //= operand
        elif formula == 1 and chain.doubling:
            value = operand * 2**value
        else:
            value *= operand
        results.append(value)
    return results


def ask_item(item: StemItem) -> tuple[str, PhysicalQuantity, tuple[str, ...]]:
    """The question in words, the quantity that is asked for, and the names of the formulas."""
    chain = CHAINS[item.chain]
    given = [chain.dividend, chain.divisor] if item.start == 0 else [chain.results[item.start - 1]]
    last = item.start + item.formulas - 1
    given += chain.factors[max(0, item.start - 1) : last]
    wanted = chain.results[last]
    known = "; ".join(quantity.written(value) for quantity, value in zip(given, item.values, strict=True))
    unit = f", in {wanted.unit}" if wanted.unit else ""
    skills = tuple(result.name for result in chain.results[item.start : last + 1])
    return f"{chain.setting} Given: {known}. What is the {wanted.name}{unit}?", wanted, skills


def draw_choices(right: int, values: tuple[int, ...], draws: "Draws") -> tuple[str, list[int]]:
    """The right letter, and the values of all options: the others come from slips."""
    slips = {right * 2, right * 10, right + values[-1], right + 1, right * values[-1], sum(values), max(1, right // 2)}
    wrong = draws.shuffled(sorted(slips - {right}))[: len(OPTIONS) - 1]
    choices = draws.shuffled([right, *wrong])
    return OPTIONS[choices.index(right)], choices
