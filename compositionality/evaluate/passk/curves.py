"""Curves of every checkpoint and their paired differences, level by level and pooled, from counts by problem.

Legend: P problems, L levels, K values of k; the last column of values is coverage, the share of problems ever solved.
"""
# ruff: noqa: N803, N806

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from compositionality.errors import UserError
from compositionality.evaluate.counts import Counted, ProblemCounts
from compositionality.evaluate.passk.reranking import DIGITS, Row, first_at, powers, reranking_row
from compositionality.stats.estimate import TIE, Band, Counts, Floats, band, mean_of_independent
from compositionality.stats.pass_at_k import pass_at_k, pass_hat_k

POOLED = 0
Pairs = Sequence[tuple[str, str]]
"""(checkpoint, base): the difference is the checkpoint − the base."""


@dataclass(frozen=True)
class _Slice:
    """The problems of one level (or of all of them)."""

    labels: Row
    levels: Sequence[Counts]  # row numbers of each
    clusters: Counts  # (P,)
    n_samples: int  # of every problem

    def band(self, values_PK: Floats, low: float = 0.0) -> Band:
        """Means over the problems with their intervals; the levels of a test file and their sizes are no chance."""
        n = self.n_samples
        bands = [band(n * values_PK[rows], np.full(len(rows), n), self.clusters[rows], low) for rows in self.levels]
        sizes_L = np.array([len(rows) for rows in self.levels], float)
        return mean_of_independent(Band(*map(np.stack, zip(*bands, strict=True))), sizes_L / sizes_L.sum())


def curves_of(answers: Counted, pairs: Pairs) -> tuple[list[Row], list[Row], list[Row]]:
    """Rows of the curves, the differences and the budget factors; lists run over k = 1 … the fewest judged samples."""
    curves, differences, reranking = [], [], []
    for name in dict.fromkeys(name for _, name in answers):
        mine = {model: counts for (model, found), counts in answers.items() if found == name}
        values = {model: _values(counts, largest_k(mine, name)) for model, counts in mine.items()}
        for part in _slices(name, next(iter(mine.values())), largest_k(mine, name)):
            curves += [_curve(part, model, counts, values[model]) for model, counts in mine.items()]
            differences += [_difference(part, model, base, values) for model, base in pairs]
            reranking += [row for model, base in pairs for row in _reranking(part, model, base, values)]
    return curves, differences, reranking


def largest_k(answers: Mapping[str, ProblemCounts], name: str) -> int:
    """The most samples that every problem has; UserError if a problem has fewer than two."""
    fewest = {model: int(counts.judged.min()) for model, counts in answers.items()}
    model = min(fewest, key=lambda model: fewest[model])
    if fewest[model] < 2:
        problem = int(answers[model].judged.argmin())
        raise UserError(f"{model} on {name}: problem {problem} has {fewest[model]} judged samples; judge them again")
    return fewest[model]


def _values(counts: ProblemCounts, largest: int) -> Floats:
    """(P, K + 1): pass@k for every k, and whether the problem was ever solved."""
    ever_P1 = (counts.correct > 0).astype(float)[:, None]
    return np.hstack([pass_at_k(counts.correct, counts.judged, range(1, largest + 1)), ever_P1])


def _slices(name: str, problems: ProblemCounts, n_samples: int) -> Iterator[_Slice]:
    """Level by level, then all levels of the same group pooled."""
    clusters = problems.cluster_numbers
    for group in dict.fromkeys(stratum.group for stratum in problems.strata):
        strata = sorted({stratum for stratum in problems.strata if stratum.group == group})
        levels = {stratum.level: np.array(problems.rows(stratum)) for stratum in strata}
        for level, rows in levels.items():
            if level != POOLED:
                labels = {"problems": name, "group": group, "level": level, "n_problems": len(rows)}
                yield _Slice(labels, [rows], clusters, n_samples)
        labels = {"problems": name, "group": group, "level": POOLED, "n_problems": sum(map(len, levels.values()))}
        yield _Slice(labels, list(levels.values()), clusters, n_samples)


def _curve(part: _Slice, model: str, counts: ProblemCounts, values_PK: Floats) -> Row:
    found = part.band(values_PK)
    rows = np.concatenate(part.levels)
    always_K = pass_hat_k(counts.correct[rows], counts.judged[rows], range(1, values_PK.shape[1])).mean(axis=0)
    return {
        "model": model,
        **part.labels,
        **_columns("pass_at_k", found),
        "pass_hat_k": _rounded(always_K),
        "coverage": _rounded(found.value)[-1],
        "coverage_low": _rounded(found.low)[-1],
        "coverage_high": _rounded(found.high)[-1],
    }


def _difference(part: _Slice, model: str, base: str, values: Mapping[str, Floats]) -> Row:
    """Paired, problem by problem."""
    found = part.band(values[model] - values[base], low=-1)
    crossed = crossover(Band(*(column[:-1] for column in found)))
    return {
        "model": model,
        "base": base,
        **part.labels,
        **_columns("difference", found),
        "crossover": asdict(crossed) if crossed else None,
    }


def _reranking(part: _Slice, model: str, base: str, values: Mapping[str, Floats]) -> Iterator[Row]:
    """The model with k samples against the base with m times as many."""
    largest = values[model].shape[1] - 1
    for k in powers(largest // 2):
        factors = range(1, largest // k + 1)
        columns = [factor * k - 1 for factor in factors]
        found = part.band(values[model][:, [k - 1]] - values[base][:, columns], low=-1)
        yield {"model": model, "base": base, **part.labels, **reranking_row(k, factors, *found)}


def _columns(value: str, found: Band) -> Row:
    """Lists over k; the last column, coverage, left out."""
    return {
        "k": list(range(1, len(found.value))),
        value: _rounded(found.value[:-1]),
        "low": _rounded(found.low[:-1]),
        "high": _rounded(found.high[:-1]),
    }


def _rounded(values_K: Floats) -> list[float]:
    rounded: list[float] = (np.round(values_K, DIGITS) + 0.0).tolist()
    return rounded


@dataclass(frozen=True)
class Crossover:
    """The first k at which the difference has changed its sign.

    ``low``: the first k at which its interval no longer lies on the side where it began; ``high``: from which it lies
    on the other side. None: beyond the largest k.
    """

    k: int
    low: int | None
    high: int | None


def crossover(difference: Band) -> Crossover | None:
    """Find where the difference changes its sign; None if it never does."""
    sign = next((np.sign(value) for value in difference.value if abs(value) > TIE), 0.0)
    value_K, *ends = (sign * column for column in difference)
    low_K, high_K = ends if sign > 0 else reversed(ends)
    ks = range(1, len(value_K) + 1)
    k = first_at(ks, value_K < -TIE)
    return None if k is None else Crossover(k, first_at(ks, low_K <= 0), first_at(ks, high_K < 0))
