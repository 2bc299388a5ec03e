"""The primary claims: a p-value for each, and decisions that hold for the family (Holm).

That a claim holds, all its comparisons must show: the largest of their p-values (intersection-union test). That it
fails, one is enough: the smallest times their number (Bonferroni). A claim that was not run or is not testable stays a
member of the family, with p = 1: the family is that of the claims file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compositionality.evaluate.claims.model import Comparison, Rule
from compositionality.stats.estimate import CONFIDENCE
from compositionality.stats.significance import holm, p_value
from compositionality.types import Decision, Estimate

NOT_PRIMARY = dict.fromkeys(("p", "p_holm", "decision_holm"))
DECIDED = (Decision.SUPPORTED, Decision.CONTRADICTED)


@dataclass(frozen=True)
class Primary:
    """A primary claim: its plain decision, its comparisons that are testable with their estimates, how many it has."""

    decision: Decision
    comparisons: Sequence[tuple[Comparison, Estimate | None]]
    n_comparisons: int

    @property
    def p(self) -> float | None:
        """Of its decision, or of the nearer one if it is undecided; None: not run, not testable."""
        if self.decision not in (*DECIDED, Decision.UNDECIDED):
            return None
        each = [_p_values(one, estimate) if estimate else (1.0, 1.0) for one, estimate in self.comparisons]
        holds, fails = max(p for p, _ in each), min(1.0, self.n_comparisons * min(p for _, p in each))
        return {Decision.SUPPORTED: holds, Decision.CONTRADICTED: fails}.get(self.decision, min(holds, fails))


def after_holm(family: Mapping[str, Primary]) -> dict[str, dict[str, Any]]:
    """By claim: ``p``, ``p_holm`` (adjusted) and ``decision_holm``, the plain one or ``undecided``."""
    raw = [one.p for one in family.values()]
    adjusted = holm([1.0 if p is None else p for p in raw])
    return {
        name: {
            "p": p,
            "p_holm": None if p is None else its,
            "decision_holm": Decision.UNDECIDED if one.decision in DECIDED and its > 1 - CONFIDENCE else one.decision,
        }
        for (name, one), p, its in zip(family.items(), raw, adjusted, strict=True)
    }


def _p_values(comparison: Comparison, estimate: Estimate) -> tuple[float, float]:
    """Two-sided p-values that the comparison holds and that it fails; 1 where the estimate says the contrary."""
    value, threshold = estimate.value, comparison.threshold
    p = p_value(estimate, threshold)
    if comparison.rule is Rule.WITHIN:
        nearer = p if value > 0 else p_value(estimate, -threshold)
        both = max(p, p_value(estimate, -threshold))
        return (both, 1.0) if abs(value) <= threshold else (1.0, nearer)
    above, below = (p, 1.0) if value > threshold else (1.0, p)
    return (below, above) if comparison.rule is Rule.AT_MOST else (above, below)
