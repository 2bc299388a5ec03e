"""What is measured of a model on a problem: a name, and a function of rows of the table.

A measure returns two arrays (P,): counts or values, and out of how many; Σ values / Σ weights is the figure of the
problems together. A new one is one decorated function here. pass@k follows from its name: ``pass@8``, ``pass@N`` (all
samples), ``pass@N − pass@1``; ``pass^8``: that all of 8 samples are right.
"""
# ruff: noqa: N806

import re
from collections.abc import Callable

import numpy as np
import pandas as pd

from compositionality.evaluate.table import FAILURE
from compositionality.stats.estimate import Floats, Values
from compositionality.stats.pass_at_k import pass_at_k, pass_hat_k
from compositionality.types import ALL_SAMPLES, COMPOSED, CORRECT, FAILURES, GROWTH, MIXED, QUERY_VALUES

Measure = Callable[[pd.DataFrame], tuple[Values, Values]]
MEASURES: dict[str, Measure] = {}
PASS_AT, ALL_OF = re.compile(r"pass@([1-9]\d*)"), re.compile(r"pass\^([1-9]\d*)")


def measure(name: str) -> Callable[[Measure], Measure]:
    """Make a function known as the measure of this name."""

    def known(function: Measure) -> Measure:
        MEASURES[name] = function
        return function

    return known


@measure(CORRECT)
def right(rows: pd.DataFrame) -> tuple[Values, Values]:
    """Return right answers among those with a verdict."""
    return rows["right"].to_numpy(np.int64), rows["judged"].to_numpy(np.int64)


@measure(COMPOSED)
def handed_on(rows: pd.DataFrame) -> tuple[Values, Values]:
    """Return responses that hand each result on, of problems whose task can tell."""
    return _known(rows["handed_on"], rows["judged"])


@measure(MIXED)
def mixed(rows: pd.DataFrame) -> tuple[Values, Values]:
    """Return queries with right and wrong completions."""
    return ((rows["right"] > 0) & (rows["right"] < rows["n"])).to_numpy(np.int64), rows["judged"].to_numpy(np.int64)


def _known(counts: "pd.Series[float]", n: "pd.Series[int]") -> tuple[Values, Values]:
    """Return counts out of ``n``, both 0 where there is no count."""
    return counts.fillna(0).to_numpy(np.int64), n.where(counts.notna(), 0).to_numpy(np.int64)


def measure_of(name: str, n_samples: int) -> Measure:
    """Return the measure of this name; ``n_samples`` is the N of pass@N."""
    if ks := ks_of(name, n_samples):
        return lambda rows: passed(rows, ks, n_samples)
    if match := ALL_OF.fullmatch(name):
        return lambda rows: passed(rows, [int(match[1])], n_samples, pass_hat_k)
    if name in QUERY_VALUES:
        return lambda rows: (rows[name].fillna(0.0).to_numpy(float), rows["judged"].to_numpy(np.int64))
    if name in FAILURES and name != CORRECT:
        return lambda rows: _known(rows[FAILURE + name], rows["n"])
    return MEASURES[name]


def ks_of(name: str, n_samples: int) -> list[int]:
    """Return the k of a measure of pass@k, then the one that is taken off it; of another measure none."""
    if match := PASS_AT.fullmatch(name):
        return [int(match[1])]
    return {ALL_SAMPLES: [n_samples], GROWTH: [n_samples, 1]}.get(name, [])


def is_pass_at_k(name: str) -> bool:
    """Return whether a measure is one of pass@k."""
    return bool(ks_of(name, 1))


def passed(
    rows: pd.DataFrame, ks: list[int], n_samples: int, estimator: Callable[..., Floats] = pass_at_k
) -> tuple[Values, Values]:
    """Return pass@k of every problem (less that of the second k), out of N samples; of none with fewer judged than k.

    With ``pass_hat_k`` for ``estimator``: the chance that k samples are all right.
    """
    judged_P, most = rows["judged"].to_numpy(np.int64), max(ks)
    known_P = (judged_P >= most).astype(np.int64)
    right_P = np.where(known_P, rows["right"].to_numpy(np.int64), most)
    value_PK = estimator(right_P, np.where(known_P, judged_P, most), ks)
    return n_samples * (value_PK[:, 0] - value_PK[:, 1:].sum(axis=1)) * known_P, n_samples * known_P
