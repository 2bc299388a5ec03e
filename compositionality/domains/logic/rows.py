"""Puzzles about things in a row: zebra (several attributes) and ordering (one). The clues leave one solution."""

import json
from typing import TYPE_CHECKING, NamedTuple

from compositionality.domains.logic.options import LogicOptions
from compositionality.domains.logic.positions import AT, HOLDS, NOT_AT, Clue, fewest_clues

if TYPE_CHECKING:
    from compositionality.tasks.draws import Draws

ATTRIBUTES = {
    "Name": ("{}", ["Alice", "Bruno", "Carla", "David", "Elena", "Felix", "Grace", "Henry", "Irene", "Jonas"]),
    "Colour": (
        "the owner of the {} house",
        ["red", "blue", "green", "white", "yellow", "black", "brown", "pink", "grey", "orange"],
    ),
    "Pet": (
        "the owner of the {}",
        ["cat", "dog", "horse", "bird", "fish", "rabbit", "snake", "goat", "turtle", "mouse"],
    ),
    "Drink": (
        "the one who drinks {}",
        ["tea", "coffee", "milk", "water", "juice", "cocoa", "cola", "soda", "lemonade", "cider"],
    ),
    "Job": (
        "the {}",
        ["baker", "doctor", "nurse", "pilot", "teacher", "farmer", "lawyer", "painter", "singer", "writer"],
    ),
}
"""How a house is described by each attribute, and the values."""
OBJECTS = (
    "apple", "bell", "book", "bottle", "brush", "candle", "chair", "clock", "coin", "cup", "flute", "fork", "hammer",
    "key", "lamp", "map", "mirror", "needle", "pen", "ring", "rope", "shoe", "spoon", "stamp",
)  # fmt: skip
TAGS = "between an opening <answer> tag and its closing tag"


class Puzzle(NamedTuple):
    """A puzzle in words, its ground truth as JSON text, and the skills that it asks for."""

    prompt: str
    truth: str
    skills: tuple[str, ...]


class Arrangement(NamedTuple):
    """Things in a row of positions, by attribute; ``titles`` are the attributes' names."""

    titles: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


def draw_zebra(options: LogicOptions, size: int, draws: "Draws") -> Arrangement:
    """Who lives where; the name is always an attribute."""
    others = draws.shuffled(list(ATTRIBUTES)[1:])[: options.attributes - 1]
    titles = ("Name", *sorted(others, key=list(ATTRIBUTES).index))
    return Arrangement(titles, tuple(tuple(draws.shuffled(ATTRIBUTES[title][1])[:size]) for title in titles))


def draw_ordering(options: LogicOptions, size: int, draws: "Draws") -> Arrangement:
    """Which object stands where."""
    del options
    return Arrangement(("Object",), (tuple(draws.shuffled(OBJECTS)[:size]),))


def zebra_puzzle(found: Arrangement, draws: "Draws") -> Puzzle:
    """The solution is a table with a row for each house."""
    size, clues = len(found.values[0]), _clues(found, draws)
    described = [
        ATTRIBUTES[title][0].format(value)
        for title, row in zip(found.titles, found.values, strict=True)
        for value in row
    ]
    lines = [
        f"There are {size} houses in a row, house 1 on the left. In each lives one person; no two share any of these:",
        *(
            f"- {title}: {', '.join(draws.shuffled(row))}"
            for title, row in zip(found.titles, found.values, strict=True)
        ),
        "Clues:",
        *(f"{at}. {_sentence(clue, described, 'lives', 'in house {}')}" for at, clue in enumerate(clues, 1)),
    ]
    header = ["House", *found.titles]
    rows = [[str(at), *values] for at, values in enumerate(zip(*found.values, strict=True), 1)]
    form = f'{{"header": {json.dumps(header)}, "rows": [["1", ...], ...]}}'
    lines.append(f"Who lives where? Give JSON of the form {form}, one row for each house, {TAGS}.")
    return Puzzle("\n".join(lines), json.dumps({"header": header, "rows": rows}), _skills(clues))


def ordering_puzzle(found: Arrangement, draws: "Draws") -> Puzzle:
    """The solution is the list of objects from left to right."""
    (row,) = found.values
    clues = _clues(found, draws)
    described = [f"the {value}" for value in row]
    lines = [
        f"There are {len(row)} objects in a row: {', '.join(draws.shuffled(row))}.",
        *(f"{at}. {_sentence(clue, described, 'is', 'at place {} from the left')}" for at, clue in enumerate(clues, 1)),
        f'What is their order? Give a JSON list of their names from left to right, as ["x", "y", ...], {TAGS}.',
    ]
    return Puzzle("\n".join(lines), json.dumps(row), _skills(clues))


def _clues(found: Arrangement, draws: "Draws") -> list[Clue]:
    """True clues that leave this arrangement alone; plain positions only where the others do not suffice."""
    size = len(found.values[0])
    things = range(size * len(found.values))
    drawn = draws.shuffled(
        Clue(kind, first, second)
        for kind, holds in HOLDS.items()
        for first in things
        for second in things
        if first != second and holds(first % size, second % size) and _is_said_once(kind, first, second)
    )
    absent = [Clue(NOT_AT, thing, at) for thing in things for at in range(size) if thing % size != at]
    placed = [Clue(AT, thing, thing % size) for thing in things]
    mixed = draws.shuffled([*drawn, *draws.shuffled(absent)[: len(drawn) // 6]])
    return draws.shuffled(fewest_clues(size, len(things), [*mixed, *draws.shuffled(placed)]))


def _is_said_once(kind: str, first: int, second: int) -> bool:
    """Clues that hold both ways are said one way."""
    return kind not in ("same", "next to") or first < second


def _sentence(clue: Clue, described: list[str], verb: str, place: str) -> str:
    first = described[clue.first]
    if clue.kind == AT:
        text = f"{first} {verb} {place.format(clue.second + 1)}"
    elif clue.kind == NOT_AT:
        denied = "is not" if verb == "is" else "does not live"
        text = f"{first} {denied} {place.format(clue.second + 1)}"
    else:
        words = {"same": "is", "directly left": f"{verb} directly left of", "left": f"{verb} somewhere left of"}
        text = f"{first} {words.get(clue.kind, f'{verb} next to')} {described[clue.second]}"
    return f"{text[0].upper()}{text[1:]}."


def _skills(clues: list[Clue]) -> tuple[str, ...]:
    return tuple(sorted({clue.kind for clue in clues}))
