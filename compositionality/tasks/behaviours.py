"""Behaviours that can be injected into the right solutions of a task (*Behavior Injection*, arXiv 2505.18917).

What each of them looks like is the task's; ``Task.solution`` writes it.
"""

from dataclasses import dataclass

from compositionality.errors import UserError

ANALYSIS_LEVELS = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.1, 0.4, 0.8, 1.0),
    (0.0, 0.1, 0.4, 0.8, 1.0, 1.0),
    (0.0, 0.4, 0.8, 1.0, 1.0, 1.0),
    (0.0, 1.0, 1.0, 1.0, 1.0, 1.0),
)
"""Chance of an analysis by how many terms a step has, a constant among them: levels 0 to 4 of the paper's code."""


@dataclass(frozen=True, slots=True)
class Behaviours:
    """What is injected; by default nothing.

    *subgoals*: a step is worked out one operation at a time. *analysis*: what the problem says is repeated before a
    step, with a chance by the number of terms. *reflection*: the chance that something is tried that cannot be done
    yet, noticed, and left for later. *reordered*: the steps in another order that works. *padded*: nothing, but neutral
    text until the solution is as long as with ``BRIDGE``.
    """

    subgoals: bool = False
    analysis: tuple[float, ...] = ANALYSIS_LEVELS[0]
    reflection: float = 0.0
    reordered: bool = False
    padded: bool = False

    def __post_init__(self) -> None:
        for name, chances in (("analysis", self.analysis), ("reflection", (self.reflection,))):
            if not chances or not all(0 <= chance <= 1 for chance in chances):
                raise UserError(f"{name}={list(chances)}: give probabilities from 0 to 1")
        if self.padded and (self.subgoals or any(self.analysis) or self.reflection):
            raise UserError("padded=true: neutral text in place of behaviours; leave those out")

    def analysis_chance(self, terms: int) -> float:
        """Return the chance of an analysis of a step with so many terms."""
        return self.analysis[min(terms, len(self.analysis) - 1)]


def flat(chance: float) -> tuple[float, ...]:
    """Return the same chance of an analysis for every step that names a quantity."""
    return (0.0, *[chance] * 5)


PLAIN = Behaviours()
BRIDGE = Behaviours(subgoals=True, analysis=ANALYSIS_LEVELS[2], reflection=0.1)
