"""Studies drawn from known accuracies: every section, arm, group and level that given claims and their gates name."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from compositionality.evaluate.claims.decide import ByName
from compositionality.evaluate.claims.model import Claim, Comparison, Requires
from compositionality.evaluate.results import ReplicateTables, Results
from compositionality.evaluate.table import FAILURE
from compositionality.evaluate.types import DEEPEST, QUERY_VALUES, Metric
from compositionality.tasks.diagnosis import FAILURES
from compositionality.train.training_report import TrainingReport

Chance = Callable[[str, str, int, str], float]
"""The chance that an answer is right: (results, group, level, arm)."""
TRAINED = TrainingReport(100, 2, 3200, 1600, 25600, 500_000)
UNTRAINED = TrainingReport(100, 17, 6400, 188, 51200, 20_000)
"""A run that learns; RL on level 1 of an earlier recipe."""
HARDEST = 5
"""The level that stands for the deepest."""
SHAPES: dict[str, Callable[[np.random.Generator], float]] = {
    "normal": lambda rng: rng.standard_normal(),
    "one seed in four fails": lambda rng: ((rng.random() > 0.25) - 0.75) / 0.1875**0.5,
    "exponential": lambda rng: rng.standard_exponential() - 1,
}
"""How seeds differ: mean 0, spread 1."""
SAMPLES = {Metric.ACCURACY: 1, Metric.PASS_AT_K: 64, Metric.FAILURES: 8, Metric.INFLUENCE: 1}


@dataclass(frozen=True)
class Design:
    """``noise``: the spread of an arm's accuracy over seeds, of this ``shape``; ``start``: of the random numbers."""

    seeds: int = 4
    n: int = 200
    noise: float = 0.0
    shape: str = "normal"
    start: int = 0
    training: TrainingReport = TRAINED


def study(claims: Sequence[Claim], chance: Chance, design: Design = Design()) -> ByName:
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
                yield from gate.comparisons(one) if isinstance(gate, Requires) else ()


def answers(
    arm: str, group: str, level: int, right: Sequence[int] | np.ndarray, samples: int = 1, **columns: object
) -> pd.DataFrame:
    """Rows of one model on the file of a group and level: so many right of ``samples`` completions of each problem."""
    row = {"arm": arm, "file": f"{group}{level}", "group": group, "level": level, "data_source": ""}
    problems, counts = range(len(right)), {"n": samples, "judged": samples}
    known = {"problem": problems, "right": right, **row, **counts, "cluster": list(map(str, problems))}
    return pd.DataFrame({**known, **columns})


def results_of(seeds: Sequence[Sequence[pd.DataFrame]], **replicate: object) -> Results:
    """Results of seeds 0, 1, … from the rows of each."""
    return Results.of([pd.concat(rows, ignore_index=True) for rows in seeds], _replicates(len(seeds), **replicate))


def _replicates(n: int, **replicate: Any) -> list[ReplicateTables]:
    return [ReplicateTables(f"seed{number}", **replicate) for number in range(n)]


def _evaluations(comparisons: Sequence[Comparison], chance: Chance, design: Design) -> Results:
    name, metric = comparisons[0].results, comparisons[0].metric
    arms = list(dict.fromkeys(arm for one in comparisons for arm in (*one.arms, "rl-level2", "stage1")))
    levels = [(one.group, HARDEST if one.level == DEEPEST else one.level) for one in comparisons]
    places = dict.fromkeys(place for group, level in levels for place in ((group, 1), (group, level)))
    cells = [(arm, f"{group}{level}", group, level) for group, level in places for arm in arms]
    each = pd.DataFrame(cells, columns=["arm", "file", "group", "level"]).assign(data_source="", n=SAMPLES[metric])
    rows = each.loc[each.index.repeat(design.n)].assign(problem=np.tile(np.arange(design.n), len(cells)))
    tables = []
    for seed in range(design.seeds):
        drawn = []
        for arm, _, group, level in cells:
            rng = np.random.default_rng([design.start, seed, level, *f"{name}/{group}/{arm}".encode()])
            mean = np.clip(chance(name, group, level, arm) + design.noise * SHAPES[design.shape](rng), 0, 1)
            drawn.append(_counts(rng, metric, float(mean), design.n))
        columns = {key: np.concatenate([counts[key] for counts in drawn]) for key in drawn[0]}
        tables.append(rows.assign(cluster=rows["problem"], judged=rows["n"]).assign(**columns))
    return Results.of(tables, _replicates(design.seeds, training=dict.fromkeys(arms, design.training)))


def _counts(rng: np.random.Generator, metric: Metric, mean: float, n: int) -> dict[str, np.ndarray]:
    """What is handed on is what is correct; wrong answers fall into the other classes at random."""
    correct = rng.binomial(SAMPLES[metric], mean, n)
    if metric is Metric.INFLUENCE:  # mixed with that chance; influence and entropy around it
        return {"right": correct, "n": np.full(n, 2), **{name: rng.normal(mean, 0.1, n) for name in QUERY_VALUES}}
    counts = {"right": correct, "handed_on": correct}
    if metric is Metric.FAILURES:
        names = [name for name in FAILURES if name not in ("correct", "miscopied_string")]
        wrong = rng.multinomial(SAMPLES[metric] - correct, np.full(len(names), 1 / len(names)))
        classes = {"correct": correct, "miscopied_string": 0 * correct, **dict(zip(names, wrong.T, strict=True))}
        counts |= {FAILURE + kind: counted for kind, counted in classes.items()}
    return counts
