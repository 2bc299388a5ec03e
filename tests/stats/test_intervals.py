"""Intervals against known values, against scipy, and by simulated coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from compositionality.stats.intervals import (
    Counts,
    Floats,
    effective_samples,
    mean_change,
    paired_difference,
    share,
    wilson,
)
from compositionality.stats.rare import paired_score
from compositionality.types import Estimate


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
    assert (found.low, found.high) == pytest.approx((-0.0148, 0.0148), abs=1e-4)  # z² / (n + z²)


def answers(*correct: int, samples: int, problems: int) -> tuple[Counts, Counts]:
    """The first problems have so many correct samples, the others none."""
    return np.array([*correct, *[0] * (problems - len(correct))]), np.full(problems, samples)


@pytest.mark.parametrize(("samples", "problems"), [(1, 24), (8, 6), (8, 40), (64, 100)])
def test_one_solved_never_makes_an_interval_shorter_than_none(samples: int, problems: int) -> None:
    """Neither one sample of one problem nor all of it; at the other end the same."""
    none, judged = answers(samples=samples, problems=problems)
    for one in (
        answers(1, samples=samples, problems=problems)[0],
        answers(samples, samples=samples, problems=problems)[0],
    ):
        for low, high in ((none, one), (judged - none, judged - one)):
            assert width(share(low, judged)) <= width(share(high, judged))
        assert width(paired_difference(none, judged, none, judged)) <= width(
            paired_difference(one, judged, none, judged)
        )


def width(found: Estimate | None) -> float:
    assert found is not None
    return found.high - found.low


def test_discordant_problems_widen_the_interval_step_by_step() -> None:
    ones = np.ones(24, np.int64)
    found = [paired_difference((np.arange(24) < lost).astype(int), ones, 0 * ones, ones) for lost in range(8)]
    assert [width(one) for one in found] == sorted(width(one) for one in found)


@pytest.mark.parametrize(
    ("won", "lost", "n", "low", "high"),
    [(0, 0, 24, -0.1380, 0.1380), (1, 0, 24, -0.1021, 0.2024), (0, 1, 24, -0.2024, 0.1021), (24, 0, 24, 0.7240, 1.0)],
)
def test_the_score_interval_of_paired_shares(won: int, lost: int, n: int, low: float, high: float) -> None:
    assert paired_score(won / n, lost / n, n) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


@pytest.mark.parametrize(
    ("won", "lost", "problems"), [(0.01, 0.0, 24), (0.05, 0.0, 24), (0.05, 0.02, 100), (0.02, 0.02, 100)]
)
def test_intervals_of_rare_differences_hold_the_truth(won: float, lost: float, problems: int) -> None:
    """Few or none of the problems differ; with counts as coarse as that an interval may cover more, never less."""
    random = np.random.default_rng(0)
    kinds = random.choice([1, -1, 0], (600, problems), p=[won, lost, 1 - won - lost])
    found = [mean_change(row.astype(float)) for row in kinds]
    assert np.mean([one.low <= won - lost <= one.high for one in found]) >= 0.93


def clustered(random: np.random.Generator, clusters: int, problems: int) -> tuple[Counts, Counts, Floats]:
    """Problems drawn from so many compositions, each as hard as the others of its own; (clusters, problems' chance)."""
    which = random.integers(0, clusters, problems)
    chance = random.beta(1.0, 1.5, clusters)
    return which, random.binomial(1, chance[which]), random.binomial(1, 0.6 * chance[which])


@pytest.mark.parametrize(("clusters", "problems"), [(29, 300), (12, 100)])
def test_intervals_over_clusters_hold_the_truth(clusters: int, problems: int) -> None:
    random, ones = np.random.default_rng(0), np.ones(problems, np.int64)
    shares, changes, alone = [], [], []
    for _ in range(800):
        which, better, base = clustered(random, clusters, problems)
        shares.append(covers(share(better, ones, which), 0.4))
        changes.append(covers(mean_change((better - base).astype(float), clusters=which), 0.16))
        alone.append(covers(share(better, ones), 0.4))
    assert 0.93 <= np.mean(shares) <= 0.975
    assert 0.93 <= np.mean(changes) <= 0.975
    assert np.mean(alone) < 0.9  # the problems as independent: too short


def covers(found: Estimate | None, truth: float) -> bool:
    return found is not None and found.low <= truth <= found.high


def test_problems_of_their_own_are_their_own_clusters() -> None:
    correct, judged = np.array([3, 0, 1, 4]), np.full(4, 4)
    assert share(correct, judged, np.array([7, 2, 9, 4])) == share(correct, judged)
    change = correct / judged
    assert mean_change(change, clusters=np.arange(4)) == mean_change(change)


def test_one_cluster_says_nothing() -> None:
    found = mean_change(np.array([0.2, 0.4, 0.1]), clusters=np.zeros(3, np.int64))
    assert (found.low, found.high) == (-1, 1)
    whole = share(np.array([1, 0, 1]), np.ones(3, np.int64), np.zeros(3, np.int64))
    assert width(whole) > 0.75
