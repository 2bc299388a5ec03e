"""Intervals against known values, against scipy, and by simulated coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from compositionality.stats.intervals import effective_samples, paired_difference, share, wilson


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [(0, 10, 0.0, 0.277533), (10, 10, 0.722467, 1.0), (5, 10, 0.236593, 0.763407), (81, 263, 0.255296, 0.366189)],
)
def test_wilson_gives_known_values(correct: int, n: int, low: float, high: float) -> None:
    assert wilson(correct / n, n) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 500), st.data())
def test_wilson_agrees_with_scipy_and_holds_the_share(n: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, n))
    low, high = wilson(correct / n, n)
    expected = binomtest(correct, n).proportion_ci(0.95, method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= low <= correct / n <= high <= 1


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_one_sample_per_problem_is_plain_wilson(correct: list[bool]) -> None:
    counts = np.array(correct, np.int64)
    found = share(counts, np.ones_like(counts))
    assert found is not None
    assert (found.low, found.high) == pytest.approx(wilson(counts.mean(), len(counts)), abs=1e-9)


def test_samples_of_one_problem_that_agree_count_once() -> None:
    judged = np.full(40, 8)
    assert effective_samples(np.repeat([0, 8], 20), judged) == pytest.approx(40)
    assert effective_samples(np.full(40, 4), judged) == 40 * 8
    assert effective_samples(np.zeros(40, np.int64), judged) == 40


def test_nothing_judged_is_no_share() -> None:
    assert share(np.zeros(3, np.int64), np.zeros(3, np.int64)) is None


@pytest.mark.parametrize(
    ("n_samples", "alpha", "beta"), [(1, 1.0, 1.0), (8, 0.5, 0.5), (8, 2.0, 6.0), (32, 0.3, 1.2), (4, 50.0, 50.0)]
)
def test_the_interval_covers_at_its_nominal_rate(n_samples: int, alpha: float, beta: float) -> None:
    """Problems of beta-distributed difficulty; 95 % intervals must hold the true mean in 93 to 97 % of the runs."""
    random = np.random.default_rng(0)
    runs, problems = 4000, 100
    difficulty = random.beta(alpha, beta, (runs, problems))
    correct = random.binomial(n_samples, difficulty)
    judged = np.full(problems, n_samples)
    truth = alpha / (alpha + beta)
    found = [share(row, judged) for row in correct]
    covered = np.mean([interval is not None and interval.low <= truth <= interval.high for interval in found])
    assert 0.93 <= covered <= 0.97


def test_the_paired_difference_covers_and_is_narrower_than_unpaired() -> None:
    random = np.random.default_rng(1)
    judged = np.full(100, 4)
    hits, widths = 0, []
    for _ in range(2000):
        difficulty = random.beta(1, 1, 100)
        base, better = random.binomial(4, 0.8 * difficulty), random.binomial(4, difficulty)
        found = paired_difference(better, judged, base, judged)
        assert found is not None
        hits += found.low <= 0.1 <= found.high
        widths.append(found.high - found.low)
    assert 0.93 <= hits / 2000 <= 0.97
    assert np.mean(widths) < 0.15


def test_the_difference_is_taken_over_problems_that_both_judged() -> None:
    found = paired_difference(
        np.array([1, 1, 0, 1]), np.array([1, 1, 1, 1]), np.array([0, 1, 0, 0]), np.array([1, 1, 1, 0])
    )
    assert found is not None
    assert found.value == pytest.approx(1 / 3)
    assert paired_difference(np.array([1]), np.array([1]), np.array([0]), np.array([1])) is None


def test_no_difference_seen_is_not_certainty() -> None:
    ones = np.ones(256, np.int64)
    found = paired_difference(0 * ones, ones, 0 * ones, ones)
    assert found is not None
    assert found.value == 0
    assert (found.low, found.high) == pytest.approx((-0.0143, 0.0143), abs=1e-4)
