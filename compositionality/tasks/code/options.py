"""What can be chosen."""

from dataclasses import dataclass

from compositionality.errors import UserError
from compositionality.tasks.code.operations import check_levels
from compositionality.tasks.stream import check_choice

KINDS = ("functional", "stdio", "pytest")


@dataclass(frozen=True)
class CodeOptions:
    """Options of the task; the level of a problem is how many operations its program composes."""

    levels: tuple[int, ...] = (2, 3, 4)  # operations; candidates take turns
    kind: str = "functional"  # of the tests: functional (a function), stdio (a program) or pytest
    group: str = "code"  # name of this set of problems

    def check(self) -> None:
        """UserError for options that make no sense."""
        check_choice("kind", self.kind, KINDS)
        check_levels(self.levels)
        if not self.group.isidentifier():
            raise UserError(f"group={self.group}: give a word")
