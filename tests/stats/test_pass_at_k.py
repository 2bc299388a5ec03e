"""P6: pass@k against enumeration, and its intervals by simulated coverage.

Legend: P problems, R simulated runs, which are the columns of one band.
"""
# ruff: noqa: N803, N806

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositionality.errors import UserError
from compositionality.stats.estimate import band
from compositionality.stats.pass_at_k import pass_at_k, pass_hat_k


def counts(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("n", range(1, 9))
def test_p06_pass_at_k_equals_enumeration(n: int) -> None:
    """Every way to draw k of n samples, for every number of correct ones."""
    ks = range(1, n + 1)
    for correct in range(n + 1):
        samples = [True] * correct + [False] * (n - correct)
        some = [np.mean([any(drawn) for drawn in combinations(samples, k)]) for k in ks]
        every = [np.mean([all(drawn) for drawn in combinations(samples, k)]) for k in ks]
        assert pass_at_k(counts(correct), counts(n), ks)[0] == pytest.approx(some, abs=1e-12)
        assert pass_hat_k(counts(correct), counts(n), ks)[0] == pytest.approx(every, abs=1e-12)


@given(st.integers(2, 1000), st.data())
def test_pass_at_k_rises_with_k_and_agrees_with_exact_binomials(n: int, data: st.DataObject) -> None:
    correct, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    curve = pass_at_k(counts(correct), counts(n), range(1, n + 1))[0]
    assert curve[k - 1] == pytest.approx(1 - comb(n - correct, k) / comb(n, k), abs=1e-10)
    assert pass_at_k(counts(correct), counts(n), [k])[0, 0] == curve[k - 1]
    assert (np.diff(curve) >= -1e-10).all()
    assert 0 <= curve.min() <= curve.max() <= 1
    assert curve[0] == pytest.approx(correct / n)
    assert curve[-1] == (correct > 0)


def test_problems_may_have_different_numbers_of_samples() -> None:
    found = pass_at_k(counts(1, 1, 0), counts(2, 4, 3), [1, 2])
    assert found == pytest.approx(np.array([[0.5, 1.0], [0.25, 0.5], [0.0, 0.0]]))


@pytest.mark.parametrize("k", [0, 4])
def test_p06_k_beyond_the_samples_is_refused(k: int) -> None:
    with pytest.raises(UserError, match=f"k={k}: must lie between 1 and the number of samples, 3"):
        pass_at_k(counts(1, 1), counts(3, 9), [k, 2])


DIFFICULTIES = {
    "spread evenly": lambda rng, n: rng.random(n),
    "easy or hard": lambda rng, n: rng.beta(0.3, 0.3, n),
    "mostly hard": lambda rng, n: rng.beta(0.3, 3, n),
    "all the same": lambda rng, n: np.full(n, 0.02),
}
KS = (1, 8, 64)


@pytest.mark.parametrize("kind", DIFFICULTIES)
def test_p06_intervals_cover_at_their_nominal_rate(kind: str) -> None:
    """1,000 times 100 problems × 64 samples: 95 % intervals of pass@k and of a paired difference hold the truth."""
    rng = np.random.default_rng(3)
    draw, problems, samples, runs = DIFFICULTIES[kind], 100, 64, 1000
    many = draw(rng, 400_000)
    chance_PR = draw(rng, problems * runs).reshape(problems, runs)
    base, other = (estimates(rng, share, samples) for share in (chance_PR, chance_PR**0.7))
    for place, k in enumerate(KS):
        low, high = (float((1 - (1 - share) ** k).mean()) for share in (many, many**0.7))
        # With fewer than five problems on the rarer side counts are so coarse that no interval covers at 95 % sharp:
        # then it must not cover less.
        most = 0.97 if problems * min(low, 1 - low) >= 5 else 1.0
        assert 0.93 <= covered(base[place], low, 0.0) <= most
        assert 0.93 <= covered(other[place] - base[place], high - low, -1.0) <= most


def estimates(rng: np.random.Generator, chance_PR: np.ndarray, samples: int) -> list[np.ndarray]:
    """pass@k of every problem in every run, for each of ``KS``."""
    correct = rng.binomial(samples, chance_PR)
    values = pass_at_k(correct.ravel(), np.full(correct.size, samples), KS)
    return [of_k.reshape(correct.shape) for of_k in values.T]


def covered(values_PR: np.ndarray, truth: float, least: float) -> float:
    """Share of the runs whose interval holds the truth; every problem has 64 samples."""
    found = band(64 * values_PR, np.full(len(values_PR), 64), None, least)
    return float(((found.low <= truth) & (truth <= found.high)).mean())
