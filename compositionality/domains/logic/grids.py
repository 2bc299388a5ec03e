"""Grid transformations in the manner of ARC: square grids of digits, some examples, one grid to transform.

All sequences of transformations that explain the examples agree on the grid that is asked for.
"""

import json
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

from compositionality.domains.logic.options import LogicOptions
from compositionality.domains.logic.rows import TAGS, Puzzle
from compositionality.errors import UserError

if TYPE_CHECKING:
    from compositionality.tasks.draws import Draws

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


def _swap(first: int, second: int) -> Transformation:
    table = {first: second, second: first}
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


def apply_all(names: Sequence[str], grid: Grid) -> Grid:
    """The grid after the transformations, in their order."""
    for name in names:
        grid = LIBRARY[name](grid)
    return grid


def outcomes(shown: Sequence[tuple[Grid, Grid]], grid: Grid, operations: int) -> set[Grid]:
    """What becomes of ``grid`` by any sequence of up to ``operations`` transformations that explains all pairs."""
    found = set()
    for length in range(1, operations + 1):
        for names in product(LIBRARY, repeat=length):
            if all(apply_all(names, given) == result for given, result in shown):
                found.add(apply_all(names, grid))
    return found


def draw_grids(options: LogicOptions, size: int, draws: "Draws") -> GridTask:
    """Transformations, moves and swaps as often, and a grid that they change as no shorter sequence does."""
    for _ in range(ATTEMPTS):
        names = tuple(draws.choice(list(draws.choice((MOVES, SWAPS)))) for _ in range(options.operations))
        grid = _random_grid(size, draws)
        result = apply_all(names, grid)
        if result != grid and (len(names) == 1 or all(move(grid) != result for move in LIBRARY.values())):
            return GridTask(names, grid)
    raise UserError(f"kind=arc levels={list(options.levels)}: no transformation changes a grid")


def arc_puzzle(drawn: GridTask, options: LogicOptions, draws: "Draws") -> Puzzle:
    """Examples, until all that explains them agrees on the answer."""
    for _ in range(ATTEMPTS):
        grids = [_random_grid(len(drawn.grid), draws) for _ in range(options.examples)]
        shown = [(grid, apply_all(drawn.names, grid)) for grid in grids]
        if len(outcomes(shown, drawn.grid, options.operations)) == 1:
            break
    else:
        raise UserError(f"kind=arc: {options.examples} examples do not tell the transformations apart; give more")
    lines = [
        "The same rule turns each input grid into its output grid.",
        *(f"Input: {_written(given)}\nOutput: {_written(result)}" for given, result in shown),
        f"Input: {_written(drawn.grid)}",
        f"Give the output grid of the last input, as a list of rows, {TAGS}.",
    ]
    return Puzzle("\n".join(lines), _written(apply_all(drawn.names, drawn.grid)), tuple(map(_skill, drawn.names)))


def _random_grid(size: int, draws: "Draws") -> Grid:
    return tuple(tuple(draws.below(COLOURS) for _ in range(size)) for _ in range(size))


def _written(grid: Grid) -> str:
    return json.dumps(grid)


def _skill(name: str) -> str:
    return "swap colours" if name in SWAPS else name
