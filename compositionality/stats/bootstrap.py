"""Intervals of means over problems: a bootstrap that draws problems, all their samples with them.

Drawn are problems within each level, as many as it has: the levels of a test file are no chance. The interval is BCa
(Efron 1987, J. American Statistical Association 82), its quantiles widened for few problems as Student's are
(Hesterberg 2015, The American Statistician 69): a percentile interval of 32 problems is too narrow.

A bootstrap knows only the problems that it has: if all are solved, or all but one, it sees next to no spread. Where
fewer than two problems carry the spread (participation ratio of the squared residuals), the interval is widened to one
that knows the number of problems: Wilson's for a share, for a difference the share of problems that may yet differ
unseen; between two and four in proportion, so that a curve's band has no step.

Legend: P problems, R draws, K columns (values of k).
"""
# ruff: noqa: N803, N806

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compositionality.stats.intervals import CONFIDENCE

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
TAIL = 0.5 - CONFIDENCE / 2
FEW_CARRIERS, ENOUGH_CARRIERS = 2.0, 4.0
TIE = 1e-12


@dataclass(frozen=True)
class Band:
    """Means over problems with their intervals, each (K,)."""

    value: Floats
    low: Floats
    high: Floats


def shares_drawn(strata: Sequence[Rows], n_problems: int, draws: int, seed: int) -> Floats:
    """(R, P): the weight of every problem in the mean of every draw. ``strata``: the rows of each level."""
    random = np.random.default_rng(seed)
    weights_RP = np.zeros((draws, n_problems))
    size = sum(len(rows) for rows in strata)
    for rows in strata:
        weights_RP[:, rows] = random.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), draws) / size
    return weights_RP


def drawn_means(weights_RP: Floats, values_PK: Floats) -> Floats:
    """(K, R): the mean of every draw."""
    means_KR: Floats = np.ascontiguousarray(values_PK.T) @ weights_RP.T
    return means_KR


def band(values_PK: Floats, drawn_KR: Floats, strata: Sequence[Rows], *, signed: bool = False) -> Band:
    """The mean of the problems of ``strata`` with its interval; ``signed``: values in [-1, 1], not [0, 1]."""
    rows = np.concatenate(strata)
    n = len(rows)
    mean_K = values_PK[rows].mean(axis=0)
    residual_PK = np.concatenate([values_PK[part] - values_PK[part].mean(axis=0) for part in strata])
    low_K, high_K = _bca(mean_K, residual_PK, np.sort(drawn_KR, axis=1), n - len(strata))
    doubt_K = _doubt(residual_PK)
    far_low_K, far_high_K = _unseen(mean_K, n, signed=signed)
    low_K = low_K - doubt_K * np.maximum(low_K - far_low_K, 0)
    high_K = high_K + doubt_K * np.maximum(far_high_K - high_K, 0)
    return Band(
        mean_K,
        np.clip(np.minimum(low_K, mean_K), -1.0 if signed else 0.0, 1.0),
        np.clip(np.maximum(high_K, mean_K), -1.0 if signed else 0.0, 1.0),
    )


def _bca(mean_K: Floats, residual_PK: Floats, sorted_KR: Floats, freedom: int) -> tuple[Floats, Floats]:
    """Bias-corrected and accelerated quantiles of the draws; ``freedom``: problems less levels."""
    from scipy.special import ndtr, ndtri
    from scipy.stats import t

    draws = sorted_KR.shape[1]
    below_K = np.count_nonzero(sorted_KR < mean_K[:, None] - TIE, axis=1)
    tied_K = np.count_nonzero(sorted_KR <= mean_K[:, None] + TIE, axis=1) - below_K
    bias_K = ndtri(np.clip((below_K + tied_K / 2) / draws, 1 / draws, 1 - 1 / draws))
    squares_K = (residual_PK**2).sum(axis=0)
    skew_K = (residual_PK**3).sum(axis=0) / (6 * np.maximum(squares_K, TIE) ** 1.5)
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


def _doubt(residual_PK: Floats) -> Floats:
    """(K,) from 0 (enough problems carry the spread) to 1 (so few that the bootstrap says nothing)."""
    squares_PK = residual_PK**2
    total_K, fourth_K = squares_PK.sum(axis=0), (squares_PK**2).sum(axis=0)
    carriers_K = np.where(total_K > TIE, total_K**2 / np.maximum(fourth_K, TIE**2), 0.0)
    doubt_K: Floats = np.clip((ENOUGH_CARRIERS - carriers_K) / (ENOUGH_CARRIERS - FEW_CARRIERS), 0, 1)
    return doubt_K


def _unseen(mean_K: Floats, n: int, *, signed: bool) -> tuple[Floats, Floats]:
    """What n problems leave possible, whatever their spread."""
    if signed:
        half = 1 - TAIL ** (1 / n)
        return mean_K - half, mean_K + half
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(np.clip(mean_K, 0.0, 1.0) * n, n, alpha=2 * TAIL, method="wilson")
    return np.minimum(low, mean_K), np.maximum(high, mean_K)
