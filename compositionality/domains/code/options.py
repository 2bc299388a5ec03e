"""What can be chosen."""

from dataclasses import dataclass

from compositionality.domains.code.operations import check_chains
from compositionality.tasks.stream import check_choice

KINDS = ("functional", "stdio", "pytest")


@dataclass(frozen=True)
class CodeOptions:
    """Options of the task; the level of a problem is how many operations its program composes."""

    levels: tuple[int, ...] = (2, 3, 4)  # operations; candidates take turns
    kind: str = "functional"  # of the tests: functional (a function), stdio (a program) or pytest
    group: str = "code"  # name of this set of problems

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_chains(self.levels, self.group)
