"""Studies drawn from known accuracies: every section, arm, group and level that given claims and their gates name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compositionality.evaluate.claims.gates import Results
from compositionality.evaluate.counts import ProblemCounts, Stratum
from compositionality.evaluate.evaluations import Evaluation, Evaluations, ProblemSet
from compositionality.gate_types import Shown
from compositionality.types import DEEPEST, FAILURES, QUERY_VALUES, Claim, Comparison, Metric, TrainingReport

Chance = Callable[[str, str, int, str], float]
"""The chance that an answer is right: (results, group, level, arm)."""
TRAINED = TrainingReport(100, 2, 3200, 1600, 25600, 500_000)
UNTRAINED = TrainingReport(100, 17, 6400, 188, 51200, 20_000)
"""A run that learns; RL on level 1 of an earlier recipe."""
HARDEST = 5
"""The level that stands for the deepest."""
SAMPLES = {Metric.ACCURACY: 1, Metric.PASS_AT_K: 64, Metric.FAILURES: 8, Metric.INFLUENCE: 1}


@dataclass(frozen=True)
class Design:
    """``noise``: the spread of an arm's accuracy over the seeds; ``start``: of the random numbers."""

    seeds: int = 4
    n: int = 200
    noise: float = 0.0
    start: int = 0
    training: TrainingReport = TRAINED


def study(claims: Sequence[Claim], chance: Chance, design: Design = Design()) -> Results:
    """Answers to all that the claims compare, with the atoms (level 1) of each group."""
    metrics = {one.results: one.metric for one in _comparisons(claims)}
    return {
        name: _evaluations([one for one in _comparisons(claims) if one.results == name], chance, design)
        for name in metrics
    }


def _comparisons(claims: Sequence[Claim]) -> Iterator[Comparison]:
    for claim in claims:
        for one in claim.comparisons:
            yield one
            for gate in one.gates:
                yield from gate.comparisons if isinstance(gate, Shown) else ()


def _evaluations(comparisons: Sequence[Comparison], chance: Chance, design: Design) -> Evaluations:
    name, metric = comparisons[0].results, comparisons[0].metric
    arms = list(dict.fromkeys(arm for one in comparisons for arm in (*one.arms, "rl-level2", "stage1")))
    levels = [(one.group, HARDEST if one.level == DEEPEST else one.level) for one in comparisons]
    places = dict.fromkeys(place for group, level in levels for place in ((group, 1), (group, level)))
    seeds = []
    for seed in range(design.seeds):
        counts = {}
        for group, level in places:
            for arm in arms:
                rng = np.random.default_rng([design.start, seed, level, *f"{name}/{group}/{arm}".encode()])
                mean = np.clip(chance(name, group, level, arm) + design.noise * rng.standard_normal(), 0, 1)
                counts[arm, f"{group}{level}"] = _answers(rng, Stratum(group, level), metric, float(mean), design.n)
        seeds.append(Evaluation(f"seed{seed}", Path(), {}, {}, counts, dict.fromkeys(arms, design.training)))
    sets = tuple(ProblemSet(f"{group}{level}", group, level) for group, level in places)
    return Evaluations(tuple(seeds), tuple(arms), sets)


def _answers(rng: np.random.Generator, stratum: Stratum, metric: Metric, mean: float, n: int) -> ProblemCounts:
    """What is composed is what is correct; wrong answers fall into the other classes at random."""
    samples = SAMPLES[metric]
    correct = rng.binomial(samples, mean, n)
    classes: Mapping[str, np.ndarray] = {}
    if metric is Metric.FAILURES:
        wrong = rng.multinomial(samples - correct, np.full(len(FAILURES) - 1, 1 / (len(FAILURES) - 1)))
        classes = {"correct": correct, **dict(zip(FAILURES[1:], wrong.T, strict=True))}
    if metric is Metric.INFLUENCE:  # mixed with that chance; influence and entropy around it
        classes = {"mixed": correct, **{name: rng.normal(mean, 0.1, n) for name in QUERY_VALUES}}
    return ProblemCounts((stratum,) * n, np.full(n, samples), correct, composed=correct, classes=classes)
