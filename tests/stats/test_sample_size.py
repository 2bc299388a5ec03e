"""What an undecided comparison needs: solved for by hand, and borne out by simulated studies of that size."""

import math

import numpy as np
import pytest
from scipy import stats

from compositionality.stats.random_effects import Floats, half_width_over_both, spread_of
from compositionality.stats.sample_size import (
    TOO_CLOSE,
    Needed,
    RequiredSampleSize,
    enough_for_all,
    required_sample_size,
)
from compositionality.types import Spread


def reach(n: float, error: float) -> float:
    """What is found with 80 % power: Student's half-width and his 80 % quantile."""
    return float(stats.t.ppf(0.975, n - 1) + stats.t.ppf(0.8, n - 1)) * error


def test_problems_for_one_seed_are_students() -> None:
    need = required_sample_size([Spread(k=1, n=100, seeds=0.0, problems=0.25, pooled=0.25)], 0.06)
    assert need.seeds == Needed()
    for n, enough in ((need.problems.number, True), (need.problems.number - 1, False)):
        assert (reach(n, 0.5 / math.sqrt(n)) <= 0.06) == enough
    assert need.words == "about 550 (470 to 670) problems for 80 % power"  # 547


def test_seeds_where_they_are_what_varies() -> None:
    need = required_sample_size([Spread(k=4, n=500, seeds=0.01, problems=0.001, pooled=0.02)], 0.12)
    assert need.problems == Needed()
    for k, enough in ((need.seeds.number, True), (need.seeds.number - 1, False)):
        half = stats.t.ppf(0.975, k - 1) ** 2 * 0.01 / k + stats.t.ppf(0.975, 499) ** 2 * 0.001 / 500
        error = 0.01 / k + 0.001 / 500
        assert (math.sqrt(half) + stats.t.ppf(0.8, k - 1) * math.sqrt(error) <= 0.12) == enough
    assert need.words == "about 8 (5 to 31) seeds for 80 % power"


def test_both_where_seeds_alone_would_not_do() -> None:
    need = required_sample_size([Spread(k=3, n=100, seeds=0.005, problems=0.25, pooled=0.25)], 0.07)
    assert need.seeds.number > 3
    assert need.problems.number > 100
    assert " seeds and about " in need.words


def test_a_range_without_an_upper_end() -> None:
    assert Needed(5, 3, math.inf).words("seeds") == "about 5 (3 or more) seeds"


@pytest.mark.parametrize(("distance", "told"), [(0.0, False), (0.0499, False), (0.0501, True)])
def test_within_one_standard_error_of_the_threshold_no_number_is_named(distance: float, *, told: bool) -> None:
    need = required_sample_size([Spread(k=4, n=500, seeds=0.01, problems=0.0, pooled=0.02)], distance)
    assert (need.words != TOO_CLOSE) == told
    assert (enough_for_all([RequiredSampleSize(Needed(5, 4, 9)), need]).words != TOO_CLOSE) == told


def test_a_claim_needs_the_most_of_its_comparisons() -> None:
    sizes = [RequiredSampleSize(Needed(4, 3, 20)), RequiredSampleSize(Needed(12, 8, 30)),
             RequiredSampleSize(problems=Needed(877, 800, 1000))]  # fmt: skip
    assert (
        enough_for_all(sizes).words == "about 12 (8 to 30) seeds and about 880 (800 to 1,000) problems for 80 % power"
    )


def test_nothing_varies_but_there_are_few_problems() -> None:
    assert required_sample_size([Spread(1, 20, 0.0, 0.0, 0.0)], 0.05).problems.number == 73  # z² / (n + z²) ≤ 0.05


def drawn(rng: np.random.Generator, k: int, n: int) -> Floats:
    """Differences by seed and problem: 0.1 on average, seeds ± 0.1, problems ± 0.3, the rest ± 0.3."""
    return (
        0.1 + 0.1 * rng.standard_normal((k, 1)) + 0.3 * rng.standard_normal((1, n)) + 0.3 * rng.standard_normal((k, n))
    )


@pytest.mark.parametrize(("k", "distance"), [(4, 0.12), (6, 0.07)])
def test_studies_of_the_needed_size_decide_four_times_in_five(k: int, distance: float) -> None:
    """As many seeds as are named where the spread is known; the truth lies ``distance`` above the threshold."""
    rng = np.random.default_rng(0)
    size = int(required_sample_size([known(k, 300)], distance).seeds.number)
    found = [drawn(rng, size, 300) for _ in range(600)]
    decided = [one.mean() - half_width_over_both(spread_of(one), size, 300) > 0.1 - distance for one in found]
    assert 0.76 <= np.mean(decided) <= 0.88  # a whole number of seeds gives a little more


def known(k: int, n: int) -> Spread:
    """The variances that ``drawn`` has."""
    return Spread(k, n, 0.01 + 0.18 / n, 0.09, 0.09 + 0.09 / k)


def test_the_range_holds_the_size_that_the_true_spread_needs() -> None:
    rng = np.random.default_rng(1)
    true = required_sample_size([Spread(6, 500, 0.01, 0.0, 0.01)], 0.1).seeds.number
    variances = 0.01 * rng.chisquare(5, 80) / 5
    needs = [required_sample_size([Spread(6, 500, float(one), 0.0, 0.01)], 0.1).seeds for one in variances]
    assert np.mean([need.low <= true <= need.high for need in needs if need.number]) > 0.75
