"""What can be chosen."""

from dataclasses import dataclass

from compositionality.domains.code.operations import check_chains
from compositionality.tasks.stream import check_choice

KINDS = ("codeio_output", "codeio_input", "cruxeval_output", "cruxeval_input")


@dataclass(frozen=True)
class SimulationOptions:
    """Options of the task; the level of a problem is how many operations the shown program composes."""

    levels: tuple[int, ...] = (2, 3, 4)  # operations; candidates take turns
    kind: str = "codeio_output"  # predict the output or an input, as JSON (codeio) or as an assertion (cruxeval)
    group: str = "simulation"  # name of this set of problems

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_chains(self.levels, self.group)
