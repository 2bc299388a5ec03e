"""Intervals of means over problems: a bootstrap that draws problems, all their samples with them.

Drawn are clusters of problems (``stats.intervals``) within each level, as many as it has: the levels of a test file are
no chance. The interval is BCa (Efron 1987, J. American Statistical Association 82), its quantiles widened for few
clusters as Student's are (Hesterberg 2015, The American Statistician 69): a percentile interval of 32 is too narrow.

A bootstrap knows only the problems that it has: if all are solved, or all but one, it sees next to no spread. Where few
clusters carry the spread (``stats.rare.doubt``), the interval is widened in proportion, so that a curve's band has no
step, to one that knows their number: Wilson's for a share, Tango's for a difference.

Legend: P problems, G clusters, R draws, K columns (values of k).
"""
# ruff: noqa: N803, N806

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compositionality.stats.intervals import CONFIDENCE, Floats, numbered
from compositionality.stats.rare import TIE, doubt, paired_score

Rows = NDArray[np.int64]
TAIL = 0.5 - CONFIDENCE / 2


@dataclass(frozen=True)
class Band:
    """Means over problems with their intervals, each (K,)."""

    value: Floats
    low: Floats
    high: Floats


def shares_drawn(strata: Sequence[Rows], clusters_P: Rows, draws: int, seed: int) -> Floats:
    """(R, P): the weight of every problem in the mean of every draw. ``strata``: the rows of each level."""
    random = np.random.default_rng(seed)
    weights_RP = np.zeros((draws, len(clusters_P)))
    size = sum(len(rows) for rows in strata)
    for rows in strata:
        place = numbered(clusters_P[rows])
        n = int(place.max()) + 1
        times_RP = random.multinomial(n, np.full(n, 1 / n), draws)[:, place]
        weights_RP[:, rows] = times_RP / times_RP.sum(axis=1, keepdims=True) * (len(rows) / size)
    return weights_RP


def drawn_means(weights_RP: Floats, values_PK: Floats) -> Floats:
    """(K, R): the mean of every draw."""
    means_KR: Floats = np.ascontiguousarray(values_PK.T) @ weights_RP.T
    return means_KR


def band(
    values_PK: Floats, drawn_KR: Floats, strata: Sequence[Rows], clusters_P: Rows, *, signed: bool = False
) -> Band:
    """The mean of the problems of ``strata`` with its interval; ``signed``: values in [-1, 1], not [0, 1]."""
    rows = np.concatenate(strata)
    mean_K = values_PK[rows].mean(axis=0)
    residual_GK = np.concatenate(
        [_sums(values_PK[part] - values_PK[part].mean(axis=0), clusters_P[part]) for part in strata]
    )
    low_K, high_K = _bca(mean_K, residual_GK, np.sort(drawn_KR, axis=1), len(residual_GK) - len(strata))
    doubt_K = doubt(residual_GK)
    if doubt_K.any():
        shares_GK = np.concatenate([_sums(values_PK[part], clusters_P[part]) for part in strata]) / len(rows)
        sizes_G = np.concatenate([_sums(np.ones((len(part), 1)), clusters_P[part]) for part in strata])[:, 0]
        rare_low_K, rare_high_K = _rare(mean_K, shares_GK, len(rows) ** 2 / float(sizes_G @ sizes_G), signed=signed)
        low_K = low_K - doubt_K * np.maximum(low_K - rare_low_K, 0)
        high_K = high_K + doubt_K * np.maximum(rare_high_K - high_K, 0)
    return Band(
        mean_K,
        np.clip(np.minimum(low_K, mean_K), -1.0 if signed else 0.0, 1.0),
        np.clip(np.maximum(high_K, mean_K), -1.0 if signed else 0.0, 1.0),
    )


def _sums(values_PK: Floats, clusters_P: Rows) -> Floats:
    """(G, K)."""
    place = numbered(clusters_P)
    summed_GK = np.zeros((int(place.max()) + 1, values_PK.shape[1]))
    np.add.at(summed_GK, place, values_PK)
    return summed_GK


def _bca(mean_K: Floats, residual_GK: Floats, sorted_KR: Floats, freedom: int) -> tuple[Floats, Floats]:
    """Bias-corrected and accelerated quantiles of the draws; ``freedom``: clusters less levels."""
    from scipy.special import ndtr, ndtri
    from scipy.stats import t

    draws = sorted_KR.shape[1]
    below_K = np.count_nonzero(sorted_KR < mean_K[:, None] - TIE, axis=1)
    tied_K = np.count_nonzero(sorted_KR <= mean_K[:, None] + TIE, axis=1) - below_K
    bias_K = ndtri(np.clip((below_K + tied_K / 2) / draws, 1 / draws, 1 - 1 / draws))
    squares_K = (residual_GK**2).sum(axis=0)
    skew_K = (residual_GK**3).sum(axis=0) / (6 * np.maximum(squares_K, TIE) ** 1.5)
    z = math.sqrt(1 + 1 / max(freedom, 1)) * float(t.ppf(1 - TAIL, max(freedom, 1)))

    def at(quantile: float) -> Floats:
        moved_K = bias_K + quantile
        return _quantile(sorted_KR, ndtr(bias_K + moved_K / np.maximum(1 - skew_K * moved_K, 0.1)))

    return at(-z), at(z)


def _quantile(sorted_KR: Floats, share_K: Floats) -> Floats:
    """Another quantile for every row, linear between draws."""
    place_K = share_K * (sorted_KR.shape[1] - 1)
    left_K = np.floor(place_K).astype(int)
    row_K = np.arange(len(sorted_KR))
    left, right = sorted_KR[row_K, left_K], sorted_KR[row_K, np.minimum(left_K + 1, sorted_KR.shape[1] - 1)]
    between: Floats = left + (place_K - left_K) * (right - left)
    return between


def _rare(mean_K: Floats, share_GK: Floats, n: float, *, signed: bool) -> tuple[Floats, Floats]:
    """The interval of ``n`` clusters of which next to none differ; ``share_GK``: what each adds to the mean."""
    if signed:
        return paired_score(np.maximum(share_GK, 0).sum(axis=0), np.maximum(-share_GK, 0).sum(axis=0), n)
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(np.clip(mean_K, 0.0, 1.0) * n, n, alpha=2 * TAIL, method="wilson")
    return np.minimum(low, mean_K), np.maximum(high, mean_K)
