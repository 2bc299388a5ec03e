"""Logic puzzles of our own, each with one solution: zebra, ordering, graph and grid transformation (ARC)."""

import json
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, islice, pairwise, product
from operator import ne
from string import ascii_uppercase
from typing import Any, NamedTuple

from compositionality.errors import UserError
from compositionality.tasks.draws import Draws
from compositionality.tasks.stream import check_choice

SIZES = {"zebra": range(2, 6), "ordering": range(3, 9), "graph": range(1, 9), "arc": range(2, 9)}
KINDS = tuple(SIZES)
TAGS = "between an opening <answer> tag and its closing tag"


@dataclass(frozen=True)
class LogicOptions:
    """Size of a puzzle, by kind: houses, objects, edges to look ahead, side of the grid."""

    kind: str = "zebra"  # of puzzle: zebra, ordering, graph or arc
    levels: tuple[int, ...] = (3, 4)  # sizes: houses, objects, edges to look ahead, side of the grid
    attributes: int = 3  # of a house (zebra)
    branches: int = 3  # paths that leave the start (graph)
    examples: int = 3  # pairs of grids that are shown (arc)
    operations: int = 1  # transformations, one after another (arc)

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        sizes = SIZES[self.kind]
        if not self.levels or len(set(self.levels)) < len(self.levels) or not set(self.levels) <= set(sizes):
            raise UserError(
                f"levels={list(self.levels)}: give different sizes of kind={self.kind}, {sizes[0]} to {sizes[-1]}"
            )
        for key, low, high in (("attributes", 2, 5), ("branches", 2, 3), ("examples", 2, 5), ("operations", 1, 2)):
            if not low <= getattr(self, key) <= high:
                raise UserError(f"{key}={getattr(self, key)}: give {low} to {high}")


class Puzzle(NamedTuple):
    """A puzzle in words, its ground truth as JSON text, and the skills that it asks for."""

    prompt: str
    truth: str
    skills: tuple[str, ...]


# ---- things in a row: zebra (several attributes) and ordering (one)

ATTRIBUTES = {
    title: (description, values.split())
    for title, description, values in (
        ("Name", "{}", "Alice Bruno Carla David Elena Felix Grace Henry Irene Jonas"),
        ("Colour", "the owner of the {} house", "red blue green white yellow black brown pink grey orange"),
        ("Pet", "the owner of the {}", "cat dog horse bird fish rabbit snake goat turtle mouse"),
        ("Drink", "the one who drinks {}", "tea coffee milk water juice cocoa cola soda lemonade cider"),
        ("Job", "the {}", "baker doctor nurse pilot teacher farmer lawyer painter singer writer"),
    )
}
"""Descriptions of a house by each attribute, and the values."""
OBJECTS = (
    "apple", "bell", "book", "bottle", "brush", "candle", "chair", "clock", "coin", "cup", "flute", "fork", "hammer",
    "key", "lamp", "map", "mirror", "needle", "pen", "ring", "rope", "shoe", "spoon", "stamp",
)  # fmt: skip


class Arrangement(NamedTuple):
    """Things in a row of positions, by attribute; ``titles`` are the attributes' names."""

    titles: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


def _draw_zebra(options: LogicOptions, size: int, draws: Draws) -> Arrangement:
    """Draw who lives where; the name is always an attribute."""
    drawn = draws.shuffled(list(ATTRIBUTES)[1:])[: options.attributes - 1]
    titles = ("Name", *sorted(drawn, key=list(ATTRIBUTES).index))
    return Arrangement(titles, tuple(tuple(draws.shuffled(ATTRIBUTES[title][1])[:size]) for title in titles))


def _zebra_puzzle(drawn: Arrangement, _options: LogicOptions, draws: Draws) -> Puzzle:
    """Ask for a table with a row for each house."""
    clues = _draw_clues(drawn, draws)
    columns = list(zip(drawn.titles, drawn.values, strict=True))
    described = [ATTRIBUTES[title][0].format(value) for title, values in columns for value in values]
    header = ["House", *drawn.titles]
    rows = [[str(at), *values] for at, values in enumerate(zip(*drawn.values, strict=True), 1)]
    form = f'{{"header": {json.dumps(header)}, "rows": [["1", ...], ...]}}'
    lines = [
        f"There are {len(rows)} houses in a row, house 1 on the left. "
        "In each lives one person; no two share any of these:",
        *(f"- {title}: {', '.join(draws.shuffled(values))}" for title, values in columns),
        "Clues:",
        *(f"{at}. {_sentence(clue, described, 'lives', 'in house {}')}" for at, clue in enumerate(clues, 1)),
        f"Who lives where? Give JSON of the form {form}, one row for each house, {TAGS}.",
    ]
    return Puzzle(
        "\n".join(lines), json.dumps({"header": header, "rows": rows}), tuple(sorted({clue.kind for clue in clues}))
    )


def _ordering_puzzle(drawn: Arrangement, _options: LogicOptions, draws: Draws) -> Puzzle:
    """Ask for the list of objects from left to right."""
    (row,) = drawn.values
    clues = _draw_clues(drawn, draws)
    described = [f"the {value}" for value in row]
    lines = [
        f"There are {len(row)} objects in a row: {', '.join(draws.shuffled(row))}.",
        *(f"{at}. {_sentence(clue, described, 'is', 'at place {} from the left')}" for at, clue in enumerate(clues, 1)),
        f'What is their order? Give a JSON list of their names from left to right, as ["x", "y", ...], {TAGS}.',
    ]
    return Puzzle("\n".join(lines), json.dumps(row), tuple(sorted({clue.kind for clue in clues})))


# ---- clues about who stands where, and the arrangements that satisfy them: constraint propagation, then search
#
# A thing is a number; ``size`` things in a row (0 to size - 1, size to 2·size - 1, …) share an attribute, so that each
# stands at another of the positions 0 to size - 1. Sets of positions are bit masks.

HOLDS: dict[str, Callable[[int, int], bool]] = {
    "same": lambda first, second: first == second,
    "directly left": lambda first, second: first + 1 == second,
    "left": lambda first, second: first < second,
    "next to": lambda first, second: abs(first - second) == 1,
}
"""Clues about two things, by their positions."""
APART = "apart"  # of two things that share an attribute, which no clue has to say
RELATIONS = {**HOLDS, APART: ne}
AT, NOT_AT = "at", "not at"
"""Clues about one thing; their ``second`` is a position."""


class Clue(NamedTuple):
    """``kind`` of HOLDS with two things, or AT or NOT_AT with a thing and a position."""

    kind: str
    first: int
    second: int


def _draw_clues(drawn: Arrangement, draws: Draws) -> list[Clue]:
    """Draw true clues that leave this arrangement alone; plain positions only where the others do not suffice."""
    size = len(drawn.values[0])
    things = range(size * len(drawn.values))
    relations = draws.shuffled(
        Clue(kind, first, second)
        for kind, holds in HOLDS.items()
        for first, second in product(things, repeat=2)
        if first != second and holds(first % size, second % size)
        if kind not in ("same", "next to") or first < second  # what holds both ways is said one way
    )
    absent = [Clue(NOT_AT, thing, at) for thing in things for at in range(size) if thing % size != at]
    placed = [Clue(AT, thing, thing % size) for thing in things]
    mixed = draws.shuffled([*relations, *draws.shuffled(absent)[: len(relations) // 6]])
    return draws.shuffled(_fewest_clues(size, len(things), [*mixed, *draws.shuffled(placed)]))


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


def _fewest_clues(size: int, things: int, clues: Sequence[Clue]) -> list[Clue]:
    """Return clues, the first ones preferred, that leave one arrangement; without any of them more are left.

    ``clues`` must leave one.
    """
    shortest = bisect_left(range(len(clues)), True, key=lambda count: _is_unique(size, things, clues[:count]))
    fewest = list(clues[:shortest])
    for clue in clues[:shortest]:
        rest = [other for other in fewest if other != clue]
        fewest = rest if _is_unique(size, things, rest) else fewest
    return fewest


def _is_unique(size: int, things: int, clues: Sequence[Clue]) -> bool:
    """Return whether exactly one arrangement satisfies the clues."""
    domains = [(1 << size) - 1] * things
    pairs = [(APART, *two) for start in range(0, things, size) for two in combinations(range(start, start + size), 2)]
    for kind, first, second in clues:
        if kind in HOLDS:
            pairs.append((kind, first, second))
        else:
            domains[first] &= 1 << second if kind == AT else ~(1 << second)
    return len(list(islice(_search(size, domains, pairs), 2))) == 1


def _search(size: int, domains: list[int], pairs: Sequence[tuple[str, int, int]]) -> Iterator[list[int]]:
    """Yield the domains of each arrangement, where every thing has one position left."""
    before: list[int] = []
    while before != domains:
        before = list(domains)
        for kind, first, second in pairs:
            domains[second] &= _image(kind, size, domains[first], forward=True)
            domains[first] &= _image(kind, size, domains[second], forward=False)
            if not domains[first] or not domains[second]:
                return
    open_things = [(domain.bit_count(), thing) for thing, domain in enumerate(domains) if domain.bit_count() > 1]
    if not open_things:
        yield domains
        return
    _, thing = min(open_things)
    for position in range(size):
        if domains[thing] >> position & 1:
            yield from _search(size, [*domains[:thing], 1 << position, *domains[thing + 1 :]], pairs)


@cache
def _image(kind: str, size: int, domain: int, *, forward: bool) -> int:
    """Return the positions that the other thing of a clue can have where this one has those of ``domain``."""
    is_true, mask = RELATIONS[kind], 0
    for position, image in product(range(size), repeat=2):
        if domain >> position & 1 and (is_true(position, image) if forward else is_true(image, position)):
            mask |= 1 << image
    return mask


# ---- graphs: the first step on the only path from a start to a goal

Paths = tuple[tuple[str, ...], ...]


def _draw_graph(options: LogicOptions, size: int, draws: Draws) -> Paths:
    """Draw paths of ``size`` edges that share nothing but their start; the first one leads to the goal."""
    start, *names = draws.shuffled(ascii_uppercase)
    return tuple((start, *names[at * size : (at + 1) * size]) for at in range(options.branches))


def _graph_puzzle(paths: Paths, _options: LogicOptions, draws: Draws) -> Puzzle:
    """Ask for the node to go to first; names are single letters."""
    edges = draws.shuffled(f"{node} -> {neighbour}" for path in paths for node, neighbour in pairwise(path))
    prompt = (
        f"A directed graph has these edges: {', '.join(edges)}.\n"
        f"You are at {paths[0][0]} and want to reach {paths[0][-1]} along the edges. Which node must you go to first? "
        f"Give its name {TAGS}."
    )
    return Puzzle(prompt, json.dumps(paths[0][1]), ("path",))


# ---- grids of digits: some examples of a transformation, and one grid to transform

COLOURS = 6
ATTEMPTS = 200
Grid = tuple[tuple[int, ...], ...]
Transformation = Callable[[Grid], Grid]


class GridTask(NamedTuple):
    """The names of the transformations in their order, and the grid that they are asked of."""

    names: tuple[str, ...]
    grid: Grid


def _transposed(grid: Grid) -> Grid:
    return tuple(zip(*grid, strict=True))


def _mirrored(grid: Grid) -> Grid:
    return tuple(row[::-1] for row in grid)


def _swap(colour: int, other_colour: int) -> Transformation:
    table = {colour: other_colour, other_colour: colour}
    return lambda grid: tuple(tuple(table.get(cell, cell) for cell in row) for row in grid)


MOVES: dict[str, Transformation] = {
    "mirror": _mirrored,
    "upside down": lambda grid: grid[::-1],
    "half turn": lambda grid: _mirrored(grid[::-1]),
    "transpose": _transposed,
    "turn right": lambda grid: _transposed(grid[::-1]),
    "turn left": lambda grid: _transposed(grid)[::-1],
    "shift right": lambda grid: tuple((row[-1], *row[:-1]) for row in grid),
    "shift down": lambda grid: (grid[-1], *grid[:-1]),
}
SWAPS = {f"swap {first} and {second}": _swap(first, second) for first, second in combinations(range(COLOURS), 2)}
LIBRARY = {**MOVES, **SWAPS}


def _draw_grids(options: LogicOptions, size: int, draws: Draws) -> GridTask:
    """Draw transformations, moves and swaps as often, and a grid that they change as no shorter sequence does."""
    for _ in range(ATTEMPTS):
        names = tuple(draws.choice(list(draws.choice((MOVES, SWAPS)))) for _ in range(options.operations))
        grid = _random_grid(size, draws)
        result = _transform(names, grid)
        if result != grid and (len(names) == 1 or all(move(grid) != result for move in LIBRARY.values())):
            return GridTask(names, grid)
    raise UserError(f"kind=arc levels={list(options.levels)}: no transformation changes a grid")


def _arc_puzzle(drawn: GridTask, options: LogicOptions, draws: Draws) -> Puzzle:
    """Draw examples until all sequences that explain them agree on the answer."""
    for _ in range(ATTEMPTS):
        grids = [_random_grid(len(drawn.grid), draws) for _ in range(options.examples)]
        shown = [(grid, _transform(drawn.names, grid)) for grid in grids]
        if len(_outcomes(shown, drawn.grid, options.operations)) == 1:
            break
    else:
        raise UserError(f"kind=arc: {options.examples} examples do not tell the transformations apart; give more")
    lines = [
        "The same rule turns each input grid into its output grid.",
        *(f"Input: {json.dumps(given)}\nOutput: {json.dumps(result)}" for given, result in shown),
        f"Input: {json.dumps(drawn.grid)}",
        f"Give the output grid of the last input, as a list of rows, {TAGS}.",
    ]
    skills = tuple("swap colours" if name in SWAPS else name for name in drawn.names)
    return Puzzle("\n".join(lines), json.dumps(_transform(drawn.names, drawn.grid)), skills)


def _outcomes(shown: Sequence[tuple[Grid, Grid]], grid: Grid, operations: int) -> set[Grid]:
    """Return what any sequence of up to ``operations`` transformations that explains ``shown`` makes of ``grid``."""
    return {
        _transform(names, grid)
        for length in range(1, operations + 1)
        for names in product(LIBRARY, repeat=length)
        if all(_transform(names, given) == result for given, result in shown)
    }


def _transform(names: Sequence[str], grid: Grid) -> Grid:
    for name in names:
        grid = LIBRARY[name](grid)
    return grid


def _random_grid(size: int, draws: Draws) -> Grid:
    return tuple(tuple(draws.below(COLOURS) for _ in range(size)) for _ in range(size))


MAKERS: dict[str, tuple[Callable[..., Any], Callable[..., Puzzle]]] = {
    "zebra": (_draw_zebra, _zebra_puzzle),
    "ordering": (
        lambda _, size, draws: Arrangement(("Object",), (tuple(draws.shuffled(OBJECTS)[:size]),)),
        _ordering_puzzle,
    ),
    "graph": (_draw_graph, _graph_puzzle),
    "arc": (_draw_grids, _arc_puzzle),
}
"""By kind what draws a solution (options, size, draws), and what asks for it (the solution, options, draws)."""
CONTENTS: dict[str, Callable[[Any], Hashable]] = {
    "graph": lambda paths: tuple(sorted(paths)),  # whatever the goal is
    "arc": lambda drawn: (drawn.grid, _transform(drawn.names, drawn.grid)),  # by whatever way
}
"""By kind what of a solution decides its split, where that is not all of it."""
