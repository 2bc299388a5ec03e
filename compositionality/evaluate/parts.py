"""Parts of what is measured (``Comparison.part``): which responses of a replicate are counted, out of how many."""

import re

import numpy as np

from compositionality.evaluate.counts import ProblemCounts, known_composed
from compositionality.stats.estimate import ByProblem, Counts, Values
from compositionality.stats.pass_at_k import pass_at_k
from compositionality.types import ALL_SAMPLES, COMPOSED, CORRECT, GROWTH

PASS_AT = re.compile(r"pass@([1-9]\d*)")


def ks_of(part: str, n_samples: int) -> list[int]:
    """The k of a part of pass@k, and what is taken off it: ``pass@8``: 8; GROWTH: N, 1; of another part none."""
    if found := PASS_AT.fullmatch(part):
        return [int(found[1])]
    return {ALL_SAMPLES: [n_samples], GROWTH: [n_samples, 1]}.get(part, [])


def is_pass_at_k(part: str) -> bool:
    """True for a part of pass@k."""
    return bool(ks_of(part, 1))


def counted(counts: ProblemCounts, part: str) -> tuple[Values, Counts]:
    """Responses of a kind (or values of queries), and out of how many, (P,)."""
    if part == COMPOSED:
        return known_composed(counts)
    return counts.correct if part == CORRECT else counts.classes[part], counts.judged


def passed(answers: ByProblem, ks: list[int]) -> ByProblem:
    """pass@k of every problem (less that of the second k), each out of one; of none with fewer judged than k."""
    known = answers.weights >= max(ks)
    judged, correct = (
        np.where(known, counts, max(ks)).astype(np.int64) for counts in (answers.weights, answers.values)
    )
    value = pass_at_k(correct, judged, ks)
    values = value[:, 0] - value[:, 1] if len(ks) > 1 else value[:, 0]
    return ByProblem(values * known, known.astype(np.int64), answers.clusters)
