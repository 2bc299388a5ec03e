"""The first step on the only path from a start to a goal: the level is how many edges that path has."""

import json
from itertools import pairwise
from string import ascii_uppercase
from typing import TYPE_CHECKING

from compositionality.domains.logic.options import LogicOptions
from compositionality.domains.logic.rows import TAGS, Puzzle

if TYPE_CHECKING:
    from compositionality.tasks.draws import Draws

Paths = tuple[tuple[str, ...], ...]


def draw_graph(options: LogicOptions, size: int, draws: "Draws") -> Paths:
    """Paths of ``size`` edges that share nothing but their start; the first one leads to the goal."""
    start, *names = draws.shuffled(ascii_uppercase)
    return tuple((start, *names[at * size : (at + 1) * size]) for at in range(options.branches))


def graph_puzzle(paths: Paths, draws: "Draws") -> Puzzle:
    """The node to go to first; names are single letters."""
    edges = draws.shuffled(f"{here} -> {there}" for path in paths for here, there in pairwise(path))
    prompt = (
        f"A directed graph has these edges: {', '.join(edges)}.\n"
        f"You are at {paths[0][0]} and want to reach {paths[0][-1]} along the edges. Which node must you go to first? "
        f"Give its name {TAGS}."
    )
    return Puzzle(prompt, json.dumps(paths[0][1]), ("path",))
