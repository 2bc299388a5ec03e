"""Intervals over seeds × problems: by hand, at the edges, and how often they hold the truth."""
# ruff: noqa: N803, N806

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from compositionality.stats.intervals import mean_change, paired_difference, share, wilson
from compositionality.stats.random_effects import (
    PROBLEMS,
    SEEDS_AND_PROBLEMS,
    Floats,
    contrast_over_seeds,
    half_width_over_both,
    share_over_seeds,
    spread_of,
)
from compositionality.types import Estimate

Counts = np.ndarray


def ones(like: Counts) -> Counts:
    return np.ones_like(like)


def test_the_half_width_by_hand() -> None:
    values_SP = np.array([[1.0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]])
    # Seeds 1/4, 2/4, 3/4: variance 1/16, over 3. Problems 1, 2/3, 1/3, 0: variance 5/27, over 4. The rest: sum of
    # squares 3 (total) - 4 · 1/8 (seeds) - 3 · 5/9 (problems) = 5/6 over 6, over 12.
    of_problems = 5 / 27 / 4 - 5 / 36 / 12
    expected = stats.t.ppf(0.975, 2) ** 2 / 48 + stats.t.ppf(0.975, 3) ** 2 * of_problems
    assert half_width_over_both(spread_of(values_SP), *values_SP.shape) == pytest.approx(math.sqrt(expected))


def test_with_very_many_problems_only_the_seeds_count() -> None:
    rows = [np.repeat([1, 0], [share, 100_000 - share]) for share in (30_000, 40_000, 50_000)]
    values_SP = np.stack([np.random.default_rng(seed).permutation(row) for seed, row in enumerate(rows)]).astype(float)
    assert half_width_over_both(spread_of(values_SP), *values_SP.shape) == pytest.approx(
        stats.t.ppf(0.975, 2) * 0.1 / math.sqrt(3), rel=0.01
    )


def test_one_seed_has_the_interval_over_problems() -> None:
    correct_SP = np.array([[1, 1, 0, 1, 0, 0, 0, 0]])
    found = share_over_seeds(correct_SP, ones(correct_SP))
    assert found is not None
    assert (found.over_both, found.covers, found.by_seed) == (None, PROBLEMS, (0.375,))
    assert (found.interval.low, found.interval.high) == wilson(3 / 8, 8)


def test_several_seeds_have_both_kinds() -> None:
    rng = np.random.default_rng(0)
    correct_SP = (rng.random((3, 200)) < np.array([[0.3], [0.4], [0.5]])).astype(np.int64)
    found = share_over_seeds(correct_SP, ones(correct_SP))
    assert found is not None
    assert found.over_both is not None
    assert found.over_problems == share(correct_SP.sum(axis=0), np.full(200, 3)).over_problems
    assert found.covers == SEEDS_AND_PROBLEMS
    assert found.value == pytest.approx(correct_SP.mean())
    assert found.over_both.low < found.over_problems.low < found.value < found.over_problems.high < found.over_both.high


def test_a_difference_is_paired_by_seed_and_problem() -> None:
    rng = np.random.default_rng(1)
    base_SP = (rng.random((3, 300)) < np.array([[0.2], [0.5], [0.8]])).astype(np.int64)
    better_SP = np.where(rng.random((3, 300)) < 0.1, 1, base_SP)  # lifts every seed alike, on the same problems
    paired = contrast_over_seeds(better_SP, ones(base_SP), base_SP, ones(base_SP))
    shuffled = contrast_over_seeds(better_SP[::-1], ones(base_SP), base_SP, ones(base_SP))
    assert paired is not None
    assert shuffled is not None
    assert paired.value == pytest.approx(shuffled.value)
    assert paired.interval.low > 0 > shuffled.interval.low
    pooled = paired_difference(better_SP.sum(axis=0), np.full(300, 3), base_SP.sum(axis=0), np.full(300, 3))
    assert pooled is not None
    assert (paired.over_problems.low, paired.over_problems.high) == pytest.approx((pooled.low, pooled.high))


def test_a_factor_counts_the_base_several_times() -> None:
    model, base = np.array([[1, 1, 0, 0]] * 2), np.array([[1, 0, 0, 0]] * 2)
    found = contrast_over_seeds(model, ones(model), base, ones(base), times=2.0)
    assert found is not None
    assert found.by_seed == (0.0, 0.0)  # 50 % = 2 × 25 %
    assert found.value == 0


@pytest.mark.parametrize("value", [0, 1])
def test_where_nothing_varies_the_number_of_problems_decides(value: int) -> None:
    correct_SP = np.full((3, 500), value)
    found = share_over_seeds(correct_SP, ones(correct_SP))
    assert found is not None
    assert found.over_both == found.over_problems
    assert found.over_both.high - found.over_both.low == pytest.approx(0.0076, abs=2e-4)
    same = contrast_over_seeds(correct_SP, ones(correct_SP), correct_SP, ones(correct_SP))
    assert same is not None
    assert same.interval.low < 0 < same.interval.high


def test_what_was_not_judged_is_left_out() -> None:
    correct_SP, judged_SP = np.array([[1, 0, 0], [1, 1, 0]]), np.array([[1, 1, 0], [1, 1, 1]])
    found = share_over_seeds(correct_SP, judged_SP)
    assert found is not None
    assert found.by_seed == (0.5, 2 / 3)
    assert share_over_seeds(correct_SP, judged_SP * [[1], [0]]) is None
    paired = contrast_over_seeds(correct_SP, judged_SP, np.zeros((2, 3), int), np.ones((2, 3), int))
    assert paired is not None
    assert paired.by_seed == (0.5, 1.0)  # the third problem is out
    assert contrast_over_seeds(correct_SP[:, :1], judged_SP[:, :1], correct_SP[:, :1], judged_SP[:, :1]) is None


@settings(deadline=None)
@given(arrays(np.int64, st.tuples(st.integers(2, 4), st.integers(2, 12)), elements=st.integers(0, 1)))
def test_the_wide_interval_holds_the_narrow_one_and_the_value(correct_SP: Counts) -> None:
    judged = ones(correct_SP)
    for found, least in (
        (share_over_seeds(correct_SP, judged), 0.0),
        (contrast_over_seeds(correct_SP, judged, np.roll(correct_SP, 1, axis=1), judged), -1.0),
    ):
        assert found is not None
        assert found.over_both is not None
        inside = (
            least,
            found.over_both.low,
            found.over_problems.low,
            found.value,
            found.over_problems.high,
            found.over_both.high,
            1.0,
        )
        assert all(a <= b + 1e-12 for a, b in pairwise(inside))


def world(rng: np.random.Generator, k: int, n: int, level: float, spread: float, lift: float = 0.0) -> Floats:
    """Chances of k seeds on n problems: log-odds of level + seed + problem + both, lifted in every cell."""
    seeds, problems = spread * rng.standard_normal((k, 1)), rng.standard_normal((1, n))
    return 1 / (1 + np.exp(-(level + lift + seeds + problems + 0.5 * rng.standard_normal((k, n)))))


def truth(level: float, spread: float, lift: float = 0.0) -> float:
    return float(world(np.random.default_rng(99), 400, 1000, level, spread, lift).mean())


def coverage(found: list[tuple[Estimate | None, float]]) -> float:
    return sum(one is not None and one.interval.low <= true <= one.interval.high for one, true in found) / len(found)


@pytest.mark.parametrize(("k", "level", "spread"), [(3, -1.5, 0.4), (5, -1.5, 0.4), (3, 0.5, 0.3), (3, -2.5, 0.5)])
def test_p06_intervals_over_seeds_and_problems_hold_the_truth_at_the_nominal_rate(
    k: int, level: float, spread: float
) -> None:
    rng, true = np.random.default_rng(0), truth(level, spread)
    found = []
    for _ in range(2000):
        correct_SP = rng.binomial(1, world(rng, k, 300, level, spread)).astype(np.int64)
        found.append((share_over_seeds(correct_SP, ones(correct_SP)), true))
    assert 0.93 <= coverage(found) <= 0.97


def differences(rng: np.random.Generator, k: int, spread: float, runs: int) -> list[tuple[Estimate | None, float]]:
    """Two arms on the same problems whose seeds lift the odds by 1 ± spread, with the true mean difference."""
    many_SP = world(np.random.default_rng(5), 1000, 400, -1.5, 0.0)
    lifts = 1 + spread * np.random.default_rng(6).standard_normal((1000, 1))
    true = float((lifted(many_SP, lifts) - many_SP).mean())
    found = []
    for _ in range(runs):
        chance_SP = world(rng, k, 300, -1.5, 0.0)
        better_SP = lifted(chance_SP, 1 + spread * rng.standard_normal((k, 1)))
        base, model = (rng.binomial(1, chance).astype(np.int64) for chance in (chance_SP, better_SP))
        found.append((contrast_over_seeds(model, ones(model), base, ones(base)), true))
    return found


def lifted(chance: Floats, by: Floats) -> Floats:
    return 1 / (1 + (1 - chance) / chance * np.exp(-by))


@pytest.mark.parametrize(("k", "spread"), [(3, 0.4), (5, 0.4), (3, 0.8)])
def test_p06_intervals_of_differences_hold_the_truth_at_the_nominal_rate(k: int, spread: float) -> None:
    assert 0.93 <= coverage(differences(np.random.default_rng(0), k, spread, 2000)) <= 0.97


@pytest.mark.parametrize("k", [2, 3])
def test_seeds_that_do_not_differ_make_the_interval_cautious_never_short(k: int) -> None:
    assert coverage(differences(np.random.default_rng(0), k, 0.0, 300)) >= 0.95


def test_intervals_over_problems_alone_miss_the_spread_of_seeds() -> None:
    """Why both kinds are shown: for other seeds the interval over problems is far too short."""
    found = differences(np.random.default_rng(0), 3, 0.8, 200)
    narrow = sum(
        one is not None and one.over_problems.low <= true <= one.over_problems.high for one, true in found
    ) / len(found)
    assert narrow < 0.5


@pytest.mark.parametrize(("spread", "low", "high"), [(0.06, 0.88, 0.91), (0.03, 0.73, 0.77)])
def test_with_one_failing_seed_in_four_intervals_cover_less_than_they_say(
    spread: float, low: float, high: float
) -> None:
    """A seed in four gains nothing, the others 25 points ± their spread; four seeds a study."""
    rng = np.random.default_rng(0)
    gains = np.where(rng.random((8000, 4)) < 0.25, 0.0, 0.25) + spread * rng.standard_normal((8000, 4))
    half = stats.t.ppf(0.975, 3) * gains.std(axis=1, ddof=1) / 2
    assert low <= np.mean(abs(gains.mean(axis=1) - 0.75 * 0.25) <= half) <= high


def test_mean_change_is_students() -> None:
    values = np.array([0.1, 0.3, 0.2, 0.4])
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    found = mean_change(values)
    assert (found.low, found.high) == pytest.approx((low, high))
