"""What can be chosen of generated logic puzzles."""

from dataclasses import dataclass

from compositionality.errors import UserError
from compositionality.tasks.stream import check_choice

SIZES = {"zebra": range(2, 6), "ordering": range(3, 9), "graph": range(1, 9), "arc": range(2, 9)}
KINDS = tuple(SIZES)


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
