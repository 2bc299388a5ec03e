"""p-values that agree with the intervals, Holm by hand, sample sizes beside simulated studies, ranks beside scipy's."""
# ruff: noqa: N806

import math

import numpy as np
import pytest
from coverage_table import EFFECTS, README, misses, with_table
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import sem, spearmanr, ttest_1samp
from scipy.stats import t as student_t

from compositionality.stats.estimate import Estimate, Interval, over_problems, over_seeds, over_splits, student
from compositionality.stats.significance import (
    SMALLEST,
    TOO_CLOSE,
    holm,
    needed,
    needed_words,
    p_value,
    rank_correlation,
)


def gain(seeds: int, start: int, n: int = 60, *, nested: bool = False) -> Estimate:
    """15 points of an arm over its base, both right by chance."""
    rng = np.random.default_rng(start)
    values_SP = rng.binomial(1, 0.55, (seeds, n)) - rng.binomial(1, 0.4, (seeds, n))
    weights = np.ones(n)
    parts = [[over_problems(row, weights, None, -1)] for row in values_SP]
    return over_splits(parts, -1) if nested else over_seeds(values_SP, np.ones((seeds, n)), None, -1)


@settings(max_examples=60)
@example(3, 22, 755, False, 1.0)  # seeds with equal means
@given(st.integers(1, 4), st.integers(2, 40), st.integers(0, 999), st.booleans(), st.floats(-1, 1))
def test_p_is_below_5_percent_where_the_interval_leaves_the_threshold_out(
    seeds: int, n: int, start: int, nested: bool, threshold: float
) -> None:
    estimate = gain(seeds, start, n, nested=nested)
    out = not estimate.low <= threshold <= estimate.high
    assert (p_value(estimate, threshold) < 0.05) == out
    for end in estimate.interval:
        assert p_value(estimate, end) == (1.0 if end == estimate.value else pytest.approx(0.05))
    assert p_value(estimate, estimate.value) == 1.0


def test_one_seeds_p_is_students() -> None:
    rng = np.random.default_rng(0)
    values = rng.binomial(1, 0.7, 50) - rng.binomial(1, 0.5, 50)
    estimate = over_problems(values, np.ones(50), None, -1)
    assert p_value(estimate, 0.05) == pytest.approx(ttest_1samp(values, 0.05).pvalue)


def test_where_nothing_is_known_of_the_spread_nothing_is_shown() -> None:
    unknown = Estimate(0.5, 1, Interval(0.1, 0.9))
    assert (p_value(unknown, 0.0), needed(unknown, 0.0)) == (1.0, None)
    assert p_value(Estimate(0.5, 5000, Interval(0.499, 0.501), df=4999), 0.0) == SMALLEST


@pytest.mark.parametrize("k", [2, 3, 5])
def test_p_values_over_seeds_and_problems_are_below_1_percent_at_most_that_often(k: int) -> None:
    """The true difference is the threshold; seeds and problems vary, Holm's procedure asks for such p."""
    rng = np.random.default_rng(0)
    studies = [
        0.1 * rng.standard_normal((k, 1)) + 0.3 * rng.standard_normal((1, 200)) + 0.5 * rng.standard_normal((k, 200))
        for _ in range(1000)
    ]
    estimates = [over_seeds(values_SP, np.ones_like(values_SP), None, -9, 9) for values_SP in studies]
    assert np.mean([p_value(one, 0.0) < 0.01 for one in estimates if one]) <= 0.015


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.02, 1.0, 1.0, 1.0]) == pytest.approx([0.08, 1.0, 1.0, 1.0])
    assert holm([]) == []


# Sample sizes


def nested(value: float, error: float, k: int) -> Estimate:
    """Of k seeds with splits of their own; ``error``: the standard error over the seeds."""
    half = student(k - 1) * error
    seeds = tuple((value,) for _ in range(k))
    ends = Interval(value - half, value + half)
    return Estimate(value, 100, Interval(value - 0.001, value + 0.001), ends, k - 1, seeds, nested=True)


def one_seed(value: float, spread: float, n: int) -> Estimate:
    half = student(n - 1) * spread / math.sqrt(n)
    return Estimate(value, n, Interval(value - half, value + half), df=n - 1, by_replicate=((value,),))


def test_problems_where_there_is_one_seed_and_seeds_where_there_are_several() -> None:
    size = needed(one_seed(0.06, 0.5, 100), 0.0)
    assert size == (547, "problems")  # ((1.964 + 0.842) · 0.5 / 0.06)², and a little for Student's
    assert needed(nested(0.12, 0.05, 4), 0.0) == (8, "seeds")
    assert needed(one_seed(0.9, 0.05, 2), 0.0) == (3, "problems")


def test_problems_where_seeds_share_them_and_these_leave_the_threshold_open() -> None:
    seeds = ((0.05,), (0.06,), (0.07,))
    estimate = Estimate(0.06, 100, Interval(-0.02, 0.14), Interval(-0.03, 0.15), 5.0, seeds)
    assert (needed(estimate, 0.0) or ("", ""))[1] == "problems"
    assert (needed(estimate, -0.025) or ("", ""))[1] == "seeds"


@pytest.mark.parametrize(("value", "told"), [(0.0, False), (0.0499, False), (0.0501, True)])
def test_within_one_standard_error_of_the_threshold_no_number_is_named(value: float, *, told: bool) -> None:
    need = needed(nested(value, 0.05, 4), 0.0)
    assert (needed_words([need]) != TOO_CLOSE) == told
    assert (needed_words([(5, "seeds"), need]) != TOO_CLOSE) == told


def test_a_claim_needs_the_most_of_its_comparisons() -> None:
    sizes = [(4, "seeds"), (12, "seeds"), (877, "problems")]
    assert needed_words(sizes) == "about 12 seeds and about 880 problems for 80 % power"
    assert needed_words([(12345, "problems")]) == "about 12,000 problems for 80 % power"


@pytest.mark.parametrize(("k", "value"), [(4, 0.12), (6, 0.07)])
def test_studies_of_the_needed_size_decide_four_times_in_five(k: int, value: float) -> None:
    """As many seeds as are named where the spread is known; it is 0.1."""
    size, _ = needed(nested(value, 0.1 / math.sqrt(k), k), 0.0) or (0, "")
    seeds = value + 0.1 * np.random.default_rng(0).standard_normal((4000, size))
    decided = seeds.mean(axis=1) > student(size - 1) * seeds.std(axis=1, ddof=1) / math.sqrt(size)
    assert 0.78 <= decided.mean() <= 0.88  # a whole number of seeds gives a little more


# Rank correlations


@pytest.mark.parametrize("sign", [1, -1])
def test_arms_that_are_ranked_alike(sign: int) -> None:
    values = np.array([[1.0, 2.0, 5.0, 3.0], [10.0, 20.0, 21.0, 20.5]])
    found = rank_correlation(values, sign * values**3)
    assert found.by_seed == pytest.approx((sign, sign))
    assert found.interval == pytest.approx((sign, sign))
    assert found.p == pytest.approx(2 / 24)  # this order and the reverse, of 4!


def test_each_seed_is_as_scipy_has_it() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.integers(0, 6, (5, 7)).astype(float), rng.normal(size=(5, 7))
    found = rank_correlation(one, other)
    assert found.by_seed == pytest.approx([spearmanr(*seed).statistic for seed in zip(one, other, strict=True)])
    assert found.value == pytest.approx(np.mean(found.by_seed))
    ends = student_t.interval(0.95, 4, loc=found.value, scale=sem(found.by_seed))
    assert found.interval == pytest.approx((max(-1, ends[0]), min(1, ends[1])))


def test_one_seed_has_no_interval_and_equal_values_no_order() -> None:
    found = rank_correlation(np.ones((1, 5)), np.arange(5.0)[None])
    assert (found.value, found.interval, found.p) == (0, None, 1)


def test_p_of_arms_that_have_nothing_in_common() -> None:
    """Below 0.05 in about a study of 20, with all orders and with many; the same again for the same values."""
    rng = np.random.default_rng(2)
    for arms in (5, 9):
        drawn = rng.normal(size=(100, 2, 2, arms))
        assert 0.01 <= np.mean([rank_correlation(*both).p <= 0.05 for both in drawn]) <= 0.1
        assert rank_correlation(*drawn[0]) == rank_correlation(*drawn[0])


def test_p06_the_readme_shows_the_coverage_that_simulations_give() -> None:
    """Of normal effects it is nominal. One seed in four that fails makes the interval of few seeds lie too high."""
    text = README.read_text(encoding="utf-8")
    assert with_table(text) == text, "run python tests/stats/coverage_table.py"
    below, above = misses(*EFFECTS["normal"], seeds=4)
    assert 0.02 < below < 0.03
    assert 0.02 < above < 0.03
    for name, too_high in (("one seed in four fails: 0, else 25 points, both ± 6", True), ("exponential", False)):
        below, above = misses(*EFFECTS[name], seeds=6)
        assert (above > 0.05 > below) == too_high
        assert (below > 0.05 > above) != too_high
