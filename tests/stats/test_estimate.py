"""Estimates by hand, at the edges, as properties, and by simulated coverage.

Legend: P problems, S seeds, R simulated runs, which are the columns of one band.
"""
# ruff: noqa: N803, N806

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from compositionality.stats.estimate import (
    NESTED,
    PROBLEMS,
    SEEDS_AND_PROBLEMS,
    Band,
    ByProblem,
    Counts,
    Estimate,
    Floats,
    Values,
    band,
    difference,
    mean_of_independent,
    over_problems,
    over_seeds,
    over_splits,
    pooled,
    student,
    tango,
    wilson,
)


def share(values: Values, weights: Values | None = None, clusters: Counts | None = None) -> Estimate:
    return over_problems(values, np.ones_like(values) if weights is None else weights, clusters)


def change(values: Values, clusters: Counts | None = None) -> Estimate:
    return over_problems(values, np.ones_like(values), clusters, -1)


def ones(like: Values) -> Values:
    return np.ones_like(like)


def width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


def covered(found: Band, truth: float) -> float:
    return float(((found.low <= truth) & (truth <= found.high)).mean())


# One replicate


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_one_sample_per_problem_is_plain_wilson(correct: list[bool]) -> None:
    estimate = share(np.array(correct, np.int64))
    expected = stats.binomtest(sum(correct), len(correct)).proportion_ci(0.95, method="wilson")
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_a_difference_is_students() -> None:
    values = np.array([0.1, 0.3, 0.2, 0.4])
    ends = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert change(values).interval == pytest.approx(ends)


def test_samples_of_one_problem_that_agree_count_once() -> None:
    estimate = share(np.repeat([0, 8], 20), np.full(40, 8))
    assert estimate.interval == share(np.repeat([0, 1], 20)).interval
    differing = share(np.full(40, 4), np.full(40, 8))
    assert differing.interval == pytest.approx(share(np.repeat([0, 1], 160)).interval)


def test_what_cannot_be_estimated_is_none() -> None:
    nothing, one = np.zeros(3, np.int64), np.array([1, 0, 0])
    assert over_problems(nothing, nothing) is None
    assert over_problems(one, one, None, -1) is None
    assert over_seeds(np.ones((2, 3)), np.array([[1, 1, 1], [0, 0, 0]])) is None
    assert over_splits([[share(one)], [over_problems(nothing, nothing)]]) is None


def test_a_difference_is_taken_over_problems_that_all_have_judged() -> None:
    model = ByProblem(np.array([1, 1, 0, 1]), np.array([1, 1, 1, 1]))
    base = ByProblem(np.array([0, 2, 0, 0]), np.array([1, 4, 1, 0]))
    both = difference((1, -2), (model, base))
    assert both.values.tolist() == [1, 0, 0, 0]
    assert both.weights.tolist() == [1, 1, 1, 0]
    assert over_problems(*both, -2).value == pytest.approx(1 / 3)


def test_no_difference_seen_is_not_certainty() -> None:
    estimate = change(np.zeros(256))
    assert (estimate.value, *estimate.interval) == pytest.approx((0, -0.0148, 0.0148), abs=1e-4)  # z² / (n + z²)


@pytest.mark.parametrize(
    ("won", "lost", "low", "high"),
    [(0, 0, -0.1380, 0.1380), (1, 0, -0.1021, 0.2024), (0, 1, -0.2024, 0.1021), (24, 0, 0.7240, 1.0)],
)
def test_tangos_interval_of_24_paired_problems(won: int, lost: int, low: float, high: float) -> None:
    ends = tango(np.array([won / 24]), np.array([lost / 24]), 24)
    assert [float(end[0]) for end in ends] == pytest.approx([low, high], abs=1e-3)


@pytest.mark.parametrize(("samples", "problems"), [(1, 24), (8, 6), (8, 40), (64, 100)])
def test_one_solved_never_makes_an_interval_shorter_than_none(samples: int, problems: int) -> None:
    """Neither one sample of one problem nor all of it; at the other end the same."""
    none, judged = np.zeros(problems, np.int64), np.full(problems, samples)
    for solved in (1, samples):
        one = np.array([solved, *none[1:]])
        assert width(share(none, judged)) <= width(share(one, judged))
        assert width(share(judged - none, judged)) <= width(share(judged - one, judged))
        assert width(change(none / judged)) <= width(change(one / judged))


def test_problems_that_differ_widen_the_interval_step_by_step() -> None:
    widths = [width(change((np.arange(24) < lost).astype(float))) for lost in range(8)]
    assert widths == sorted(widths)


def test_problems_of_their_own_are_their_own_clusters() -> None:
    correct, judged = np.array([3, 0, 1, 4]), np.full(4, 4)
    assert share(correct, judged, np.array([7, 2, 9, 4])).interval == pytest.approx(share(correct, judged).interval)
    assert change(correct / judged, np.arange(4)).interval == pytest.approx(change(correct / judged).interval)


def test_problems_of_a_cluster_that_agree_count_once() -> None:
    """20 clusters of three: a difference is that of 20 problems; a share is Wilson's, with Student's quantile."""
    values_SP, clusters = np.random.default_rng(0).integers(0, 2, (3, 20)), np.repeat(np.arange(20), 3)
    for seeds in (1, 3):
        rows, tripled = values_SP[:seeds], np.repeat(values_SP[:seeds], 3, axis=1)
        whole = over_seeds(tripled, ones(tripled), clusters, -1)
        assert whole.interval == pytest.approx(over_seeds(rows, ones(rows), None, -1).interval)
    half_right = share(np.repeat([0, 1], 30), None, clusters)
    low, high = wilson(0.5, 19 * (1.959964 / student(19)) ** 2)
    assert half_right.interval == pytest.approx((low, high), abs=1e-6)


def test_one_cluster_says_nothing() -> None:
    one = np.zeros(3, np.int64)
    assert change(np.array([0.2, 0.4, 0.1]), one).interval == (-1, 1)
    assert width(share(np.array([1, 0, 1]), None, one)) > 0.75


@given(st.integers(2, 30), st.integers(1, 4), st.integers(0, 99))
def test_a_band_is_its_columns_and_problems_without_weight_do_not_matter(n: int, samples: int, start: int) -> None:
    rng = np.random.default_rng(start)
    values_PK, clusters = rng.binomial(samples, rng.random(3), (n, 3)), rng.integers(0, n, n)
    found = band(values_PK, np.full(n, samples), clusters)
    for place, column in enumerate(values_PK.T):
        estimate = share(column, np.full(n, samples), clusters)
        assert (estimate.value, *estimate.interval) == pytest.approx([ends[place] for ends in found])
        unjudged = change(column / samples, clusters)
        values, weights = np.append(column / samples, 0), np.append(np.ones(n), 0)
        assert over_problems(values, weights, np.append(clusters, n), -1).interval == unjudged.interval


def test_a_pooled_interval_leaves_the_parts_as_they_are() -> None:
    """Weights that add up to 1; the distances of the ends in squares."""
    parts = Band(np.array([0.2, 0.6]), np.array([0.1, 0.4]), np.array([0.4, 0.7]))
    pooled = mean_of_independent(parts, np.array([0.75, 0.25]))
    assert pooled.value == pytest.approx(0.3)
    assert pooled.low == pytest.approx(0.3 - math.hypot(0.075, 0.05))
    assert pooled.high == pytest.approx(0.3 + math.hypot(0.15, 0.025))


# One replicate: coverage


@pytest.mark.parametrize(
    ("n_samples", "alpha", "beta"), [(1, 1.0, 1.0), (8, 0.5, 0.5), (8, 2.0, 6.0), (32, 0.3, 1.2), (4, 50.0, 50.0)]
)
def test_p06_intervals_of_shares_hold_the_truth_at_the_nominal_rate(n_samples: int, alpha: float, beta: float) -> None:
    """Problems of beta-distributed difficulty."""
    rng = np.random.default_rng(0)
    correct_PR = rng.binomial(n_samples, rng.beta(alpha, beta, (100, 4000)))
    assert 0.93 <= covered(band(correct_PR, np.full(100, n_samples)), alpha / (alpha + beta)) <= 0.97


@pytest.mark.parametrize(
    ("won", "lost", "problems"), [(0.01, 0.0, 24), (0.05, 0.0, 24), (0.05, 0.02, 100), (0.02, 0.02, 100)]
)
def test_intervals_of_rare_differences_hold_the_truth(won: float, lost: float, problems: int) -> None:
    """Few or none of the problems differ; with counts as coarse as that an interval may cover more, never less."""
    kinds_PR = np.random.default_rng(0).choice([1.0, -1.0, 0.0], (problems, 2000), p=[won, lost, 1 - won - lost])
    assert covered(band(kinds_PR, np.ones(problems), None, -1), won - lost) >= 0.93


@pytest.mark.parametrize(("clusters", "problems", "most"), [(29, 300, 0.97), (12, 100, 0.985)])
def test_intervals_over_clusters_hold_the_truth(clusters: int, problems: int, most: float) -> None:
    """Problems of so many compositions, each as hard as the others of its own; few clusters make it cautious."""
    rng, weights, rates = np.random.default_rng(0), np.ones(problems), []
    for _ in range(20):
        which = rng.integers(0, clusters, problems)
        chance_PR = rng.beta(1.0, 1.5, (clusters, 100))[which]
        better, base = rng.binomial(1, chance_PR), rng.binomial(1, 0.6 * chance_PR)
        bands = band(better, weights, which), band(better, weights), band(better - base, weights, which, -1)
        rates.append([covered(found, truth) for found, truth in zip(bands, (0.4, 0.4, 0.16), strict=True)])
    of_shares, alone, of_differences = np.mean(rates, axis=0)
    assert 0.93 <= of_shares <= 0.97
    assert 0.93 <= of_differences <= most
    assert alone < 0.9  # the problems as independent: too short


# Seeds that answer the same problems


def test_the_half_width_over_seeds_and_problems_by_hand() -> None:
    values_SP = np.array([[1.0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]])
    # Seeds 1/4, 2/4, 3/4: variance 1/16, over 3. Problems 1, 2/3, 1/3, 0: variance 5/27, over 4. The rest: sum of
    # squares 3 (total) - 4 · 1/8 (seeds) - 3 · 5/9 (problems) = 5/6 over 6, over 12.
    seeds, problems = student(2) ** 2 / 48, student(3) ** 2 * (5 / 27 / 4 - 5 / 36 / 12)
    estimate = over_seeds(values_SP, ones(values_SP), None, -9, 9)
    assert estimate.high - 0.5 == pytest.approx(math.sqrt(seeds + problems))
    assert (estimate.value, estimate.source) == (pytest.approx(0.5), SEEDS_AND_PROBLEMS)
    mean = over_problems(values_SP.mean(axis=0), np.ones(4), None, -9, 9)
    assert estimate.over_problems == pytest.approx(mean.over_problems)
    assert estimate.df == pytest.approx((seeds + problems) ** 2 / (seeds**2 / 2 + problems**2 / 3))


def test_one_seed_has_the_interval_over_problems() -> None:
    correct_SP = np.array([[1, 1, 0, 1, 0, 0, 0, 0]])
    estimate = over_seeds(correct_SP, ones(correct_SP))
    assert (estimate.over_seeds, estimate.source, estimate.by_seed, estimate.df) == (None, PROBLEMS, (0.375,), 7)
    assert estimate.interval == share(correct_SP[0]).interval


def contrast(model_SP: Values, base_SP: Values, times: float = 1.0) -> Estimate:
    return over_seeds(model_SP - times * base_SP, ones(base_SP), None, -times)


def test_a_difference_is_paired_by_seed_and_problem() -> None:
    rng = np.random.default_rng(1)
    base_SP = (rng.random((3, 300)) < np.array([[0.2], [0.5], [0.8]])).astype(np.int64)
    better_SP = np.where(rng.random((3, 300)) < 0.1, 1, base_SP)  # lifts every seed alike, on the same problems
    paired, shuffled = contrast(better_SP, base_SP), contrast(better_SP[::-1], base_SP)
    assert paired.value == pytest.approx(shuffled.value)
    assert paired.low > 0 > shuffled.low
    assert paired.over_problems == pytest.approx(change((better_SP - base_SP).mean(axis=0)).over_problems)


@pytest.mark.parametrize("value", [0, 1])
def test_where_nothing_varies_the_number_of_problems_decides(value: int) -> None:
    correct_SP = np.full((3, 500), value)
    estimate = over_seeds(correct_SP, ones(correct_SP))
    assert estimate.over_seeds == estimate.over_problems
    assert width(estimate) == pytest.approx(0.0076, abs=2e-4)
    same = contrast(correct_SP, correct_SP)
    assert same.low < 0 < same.high


def test_what_was_not_judged_is_left_out() -> None:
    correct_SP, judged_SP = np.array([[1, 0, 0], [1, 1, 0]]), np.array([[1, 1, 0], [1, 1, 1]])
    estimate = over_seeds(correct_SP, judged_SP)
    assert estimate.by_seed == (0.5, 2 / 3)
    assert 0 < estimate.low < estimate.value < estimate.high < 1
    assert over_seeds(correct_SP, judged_SP, None, -1).by_seed == (0.5, 1.0)  # the third problem is out


@given(arrays(np.int64, st.tuples(st.integers(2, 4), st.integers(2, 12)), elements=st.integers(0, 1)))
def test_the_wide_interval_holds_the_narrow_one_and_the_value(correct_SP: Counts) -> None:
    shares, differences = (correct_SP, 0.0), (correct_SP - np.roll(correct_SP, 1, axis=1), -1.0)
    for values_SP, low in (shares, differences):
        crossed = over_seeds(values_SP, ones(correct_SP), None, low)
        nested = over_splits([[over_problems(row, ones(row), None, low)] for row in values_SP], low)
        for estimate in (crossed, nested):
            narrow = estimate.over_problems
            inside = (low, estimate.low, narrow.low, estimate.value, narrow.high, estimate.high, 1.0)
            assert all(left <= right + 1e-12 for left, right in pairwise(inside))


def world(rng: np.random.Generator, k: int, n: int, level: float, spread: float) -> Floats:
    """Chances of k seeds on n problems: log-odds of level + seed + problem + both."""
    seeds, problems = spread * rng.standard_normal((k, 1)), rng.standard_normal((1, n))
    return 1 / (1 + np.exp(-(level + seeds + problems + 0.5 * rng.standard_normal((k, n)))))


def coverage(estimates: list[Estimate], truth: float) -> float:
    return float(np.mean([one.low <= truth <= one.high for one in estimates]))


@pytest.mark.parametrize(("k", "level", "spread"), [(3, -1.5, 0.4), (5, -1.5, 0.4), (3, 0.5, 0.3), (3, -2.5, 0.5)])
def test_p06_intervals_over_seeds_and_problems_hold_the_truth_at_the_nominal_rate(
    k: int, level: float, spread: float
) -> None:
    truth = float(world(np.random.default_rng(99), 400, 1000, level, spread).mean())
    rng = np.random.default_rng(0)
    drawn = [rng.binomial(1, world(rng, k, 300, level, spread)) for _ in range(1000)]
    assert 0.93 <= coverage([over_seeds(correct_SP, ones(correct_SP)) for correct_SP in drawn], truth) <= 0.97


@pytest.mark.parametrize(("k", "sets", "n"), [(3, 8, 300), (5, 8, 60), (5, 4, 300)])
def test_p06_a_mean_of_several_sets_knows_that_its_seeds_are_the_same_models(k: int, sets: int, n: int) -> None:
    """A model that is good at one level is good at all: levels are no further seeds."""
    rng, truth, runs = np.random.default_rng(0), 0.4, 300
    means, separate = list[Estimate](), 0
    for _ in range(runs):
        chance_S1 = truth + 0.06 * rng.standard_normal((k, 1))
        parts = [over_seeds(right_SP, ones(right_SP)) for right_SP in rng.random((sets, k, n)) < chance_S1]
        means.append(pooled(parts, [n] * sets))
        ends = Band(*np.array([(one.value, *one.interval) for one in parts]).T)
        separate += covered(mean_of_independent(ends, np.full(sets, 1 / sets)), truth)
    assert 0.93 <= coverage(means, truth) <= 0.99  # with few problems it is cautious
    assert separate / runs < 0.91  # as if every level had models of its own


def differences(k: int, spread: float, runs: int) -> tuple[list[Estimate], float]:
    """Two arms on the same problems whose seeds lift the odds by 1 ± spread, with the true mean difference."""
    many_SP = world(np.random.default_rng(5), 1000, 400, -1.5, 0.0)
    lifts = 1 + spread * np.random.default_rng(6).standard_normal((1000, 1))
    estimates, rng = [], np.random.default_rng(0)
    for _ in range(runs):
        chance_SP = world(rng, k, 300, -1.5, 0.0)
        better_SP = lifted(chance_SP, 1 + spread * rng.standard_normal((k, 1)))
        base, model = (rng.binomial(1, chance) for chance in (chance_SP, better_SP))
        estimates.append(over_seeds(model - base, ones(model), None, -1))
    return estimates, float((lifted(many_SP, lifts) - many_SP).mean())


def lifted(chance: Floats, by: Floats) -> Floats:
    return 1 / (1 + (1 - chance) / chance * np.exp(-by))


@pytest.mark.parametrize(("k", "spread"), [(3, 0.4), (5, 0.4), (3, 0.8)])
def test_p06_intervals_of_differences_hold_the_truth_at_the_nominal_rate(k: int, spread: float) -> None:
    estimates, truth = differences(k, spread, 1000)
    assert 0.93 <= coverage(estimates, truth) <= 0.97
    narrow = [one.over_problems for one in estimates]  # far too short for other seeds
    assert np.mean([low <= truth <= high for low, high in narrow]) < (0.5 if spread > 0.5 else 0.9)


@pytest.mark.parametrize("k", [2, 3])
def test_seeds_that_do_not_differ_make_the_interval_cautious_never_short(k: int) -> None:
    assert coverage(*differences(k, 0.0, 300)) >= 0.95


# Seeds with splits and problems of their own


def right(correct: int, n: int = 100) -> Counts:
    return (np.arange(n) < correct).astype(np.int64)


def test_each_seed_is_one_value() -> None:
    counts = ((20, 40), (50, 70), (30, 36))
    estimate = over_splits([[share(right(correct)) for correct in splits] for splits in counts])
    assert estimate.by_replicate == ((0.2, 0.4), (0.5, 0.7), (0.3, 0.36))
    assert estimate.by_seed == pytest.approx((0.3, 0.6, 0.33))
    assert (estimate.value, estimate.df) == (pytest.approx(0.41), 2)
    assert (estimate.source, estimate.n_problems) == (NESTED, 100)
    half = student(2) * np.std([0.3, 0.6, 0.33], ddof=1) / math.sqrt(3)
    assert width(estimate) == pytest.approx(2 * half, rel=0.35)  # Wilson's form of it


def test_a_nested_difference_is_students_over_the_seeds() -> None:
    estimate = over_splits([[change(right(gain))] for gain in (30, 20, 40)], -1)
    ends = stats.t.interval(0.95, 2, loc=0.3, scale=stats.sem([0.3, 0.2, 0.4]))
    assert (estimate.low, estimate.high) == pytest.approx(ends)
    assert estimate.over_problems.low > estimate.low


def test_seeds_count_alike_whatever_their_number_of_splits() -> None:
    splits = [[share(right(correct)) for correct in (10, 20, 30)], [share(right(60))]]
    assert over_splits(splits).value == pytest.approx(0.4)


def test_one_seed_has_the_interval_over_problems_of_its_splits() -> None:
    parts = [share(right(20)), share(right(40))]
    estimate = over_splits([parts])
    assert (estimate.over_seeds, estimate.source) == (None, PROBLEMS)
    assert estimate.low == pytest.approx(0.3 - math.hypot(*(part.value - part.low for part in parts)) / 2)


@pytest.mark.parametrize("correct", [0, 100])
def test_where_no_replicate_varies_the_problems_decide(correct: int) -> None:
    estimate = over_splits([[share(right(correct))], [share(right(correct))]])
    assert estimate.over_seeds == estimate.over_problems
    assert width(estimate) == pytest.approx(0.037 / math.sqrt(2), abs=1e-3)


@pytest.mark.parametrize(("k", "splits"), [(3, 3), (6, 2)])
def test_p06_intervals_of_nested_replicates_hold_the_truth_at_the_nominal_rate(k: int, splits: int) -> None:
    """Seeds, splits, and both arms in a split vary; the mean gain is 20 points."""
    rng = np.random.default_rng(0)

    def replicate(gain: float) -> Estimate:
        start = 0.3 + 0.05 * rng.standard_normal()
        chance = np.clip(start + 0.15 * rng.standard_normal(60), 0, 0.45)
        model, base = (rng.binomial(1, np.clip(one, 0, 1)) for one in (chance + gain, chance))
        return over_problems(model - base, np.ones(60), None, -1)

    estimates = []
    for _ in range(600):
        gains = 0.2 + 0.06 * rng.standard_normal((k, 1)) + 0.06 * rng.standard_normal((k, splits))
        estimates.append(over_splits([[replicate(gain) for gain in seed] for seed in gains], -1))
    assert 0.93 <= coverage(estimates, 0.2) <= 0.975
