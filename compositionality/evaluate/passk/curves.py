"""Curves of every checkpoint and their paired differences, level by level and pooled, from counts by problem.

Legend: P problems, R draws, K values of k; the last column of values is coverage, the share of problems ever solved.
"""
# ruff: noqa: N803, N806

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from compositionality.errors import UserError
from compositionality.evaluate.counts import Counted, ProblemCounts
from compositionality.evaluate.passk.reranking import DIGITS, Row, powers, reranking_row
from compositionality.stats.bootstrap import TAIL, Band, Rows, band, drawn_means, shares_drawn
from compositionality.stats.intervals import Floats
from compositionality.stats.pass_at_k import pass_at_k, pass_hat_k
from compositionality.stats.rare import TIE

POOLED = 0
Pairs = Sequence[tuple[str, str]]
"""(checkpoint, base): the difference is the checkpoint − the base."""


@dataclass(frozen=True)
class _Slice:
    """The problems of one level (or of all of them), with the draws that every checkpoint shares."""

    labels: Row
    strata: Sequence[Rows]
    clusters: Rows  # (P,)
    drawn: Mapping[str, Floats]  # (K + 1, R) by checkpoint


def curves_of(answers: Counted, pairs: Pairs, draws: int, seed: int) -> tuple[list[Row], list[Row], list[Row]]:
    """Rows of the curves, the differences and the budget factors; lists run over k = 1 … the fewest judged samples."""
    curves, differences, reranking = [], [], []
    for name in dict.fromkeys(name for _, name in answers):
        mine = {model: counts for (model, found), counts in answers.items() if found == name}
        values = {model: _values(counts, largest_k(mine, name)) for model, counts in mine.items()}
        for part in _slices(name, next(iter(mine.values())), values, draws, seed):
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
    return np.hstack([pass_at_k(counts.correct, counts.judged, largest), ever_P1])


def _slices(
    name: str, problems: ProblemCounts, values: Mapping[str, Floats], draws: int, seed: int
) -> Iterator[_Slice]:
    """Level by level, then all levels of the same group pooled."""
    strata, clusters = problems.strata, problems.cluster_numbers
    for group in dict.fromkeys(stratum.group for stratum in strata):
        by_level = {
            stratum.level: np.array([row for row, found in enumerate(strata) if found == stratum])
            for stratum in sorted(set(strata))
            if stratum.group == group
        }
        labels = {"problems": name, "group": group}
        weights_RP = shares_drawn(list(by_level.values()), clusters, draws, seed)
        yield from _of_group(labels, by_level, clusters, values, weights_RP)


def _of_group(
    labels: Row, strata: Mapping[int, Rows], clusters: Rows, values: Mapping[str, Floats], weights_RP: Floats
) -> Iterator[_Slice]:
    n = sum(len(rows) for rows in strata.values())
    pooled = {model: np.zeros((value.shape[1], len(weights_RP))) for model, value in values.items()}
    for level, rows in strata.items():
        drawn = {model: drawn_means(weights_RP[:, rows], value[rows]) for model, value in values.items()}
        for model, part in drawn.items():
            pooled[model] += part
            part *= n / len(rows)
        if level != POOLED:
            yield _Slice({**labels, "level": level, "n_problems": len(rows)}, [rows], clusters, drawn)
    yield _Slice({**labels, "level": POOLED, "n_problems": n}, list(strata.values()), clusters, pooled)


def _curve(part: _Slice, model: str, counts: ProblemCounts, values_PK: Floats) -> Row:
    found = band(values_PK, part.drawn[model], part.strata, part.clusters)
    rows = np.concatenate(part.strata)
    largest = values_PK.shape[1] - 1
    always_K = pass_hat_k(counts.correct[rows], counts.judged[rows], largest).mean(axis=0)
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
    """Problem by problem, and draw by draw: both checkpoints have the same problems in every draw."""
    values_PK = values[model] - values[base]
    drawn_KR = part.drawn[model] - part.drawn[base]
    found = band(values_PK, drawn_KR, part.strata, part.clusters, signed=True)
    crossed = crossover(found.value[:-1], drawn_KR[:-1])
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
        values_PK = values[model][:, [k - 1]] - values[base][:, columns]
        drawn_KR = part.drawn[model][[k - 1]] - part.drawn[base][columns]
        found = band(values_PK, drawn_KR, part.strata, part.clusters, signed=True)
        row = reranking_row(k, factors, found.value, found.low, found.high)
        yield {"model": model, "base": base, **part.labels, **row}


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
    """The first k at which the difference has changed its sign; an end that is None lies beyond the largest k."""

    k: int
    low: int | None
    high: int | None


def crossover(difference_K: Floats, drawn_KR: Floats) -> Crossover | None:
    """None if the sign never changes; the interval holds 95 % of the draws' crossovers (percentiles).

    A draw in which the other one is ahead from the start crosses at k = 1; one that never crosses does so beyond K.
    """
    signs_K = np.sign(np.where(np.abs(difference_K) > TIE, difference_K, 0.0))
    first = int(np.argmax(signs_K != 0))
    changed_K = signs_K == -signs_K[first]
    if signs_K[first] == 0 or not changed_K.any():
        return None
    turned_KR = drawn_KR * signs_K[first] < -TIE
    at_R = np.where(turned_KR.any(axis=0), turned_KR.argmax(axis=0) + 1, len(difference_K) + 1)
    low, high = np.quantile(at_R, [TAIL, 1 - TAIL], method="inverted_cdf")
    return Crossover(int(np.argmax(changed_K)) + 1, _within(low, difference_K), _within(high, difference_K))


def _within(k: float, difference_K: Floats) -> int | None:
    return int(k) if k <= len(difference_K) else None
