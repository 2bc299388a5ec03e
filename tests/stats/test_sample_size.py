"""What an undecided comparison needs: solved for by hand, and borne out by studies of that size."""

import math

import numpy as np
import pytest
from scipy import stats

from compositionality.stats.random_effects import Floats, half_width_over_both, spread_of
from compositionality.stats.sample_size import NEVER, RequiredSampleSize, enough_for_all, required_sample_size
from compositionality.types import Spread


def test_problems_for_one_seed_are_students() -> None:
    spread = Spread(k=1, n=100, seeds=0.0, problems=0.25, pooled=0.25)
    need = required_sample_size([spread], 0.05)
    assert need.seeds == 0
    for n, enough in ((need.problems, True), (need.problems - 1, False)):
        assert (stats.t.ppf(0.975, n - 1) * 0.5 / math.sqrt(n) <= 0.05) == enough
    assert need.words == "about 390 problems"  # 387


def test_seeds_where_they_are_what_varies() -> None:
    spread = Spread(k=3, n=500, seeds=0.01, problems=0.01, pooled=0.02)
    need = required_sample_size([spread], 0.1)
    assert need.problems == 0
    for k, enough in ((need.seeds, True), (need.seeds - 1, False)):
        squares = (stats.t.ppf(0.975, k - 1) ** 2 * 0.01 / k, stats.t.ppf(0.975, 499) ** 2 * 0.01 / 500)
        assert (math.sqrt(sum(squares)) <= 0.1) == enough
    assert need.words == "about 7 seeds"


def test_both_where_seeds_alone_would_not_do() -> None:
    need = required_sample_size([Spread(k=3, n=100, seeds=0.01, problems=0.25, pooled=0.25)], 0.05)
    assert (need.seeds > 3, need.problems > 100) == (True, True)
    assert need.words == "about 34 seeds and about 780 problems"
    spread = Spread(3, 100, 0.01, 0.25, 0.25)
    assert (
        half_width_over_both(spread, need.seeds, need.problems)
        <= 0.05
        < half_width_over_both(spread, need.seeds - 1, need.problems)
    )


def test_nothing_varies_but_there_are_few_problems() -> None:
    assert required_sample_size([Spread(1, 20, 0.0, 0.0, 0.0)], 0.05).problems == 73  # z² / (n + z²) ≤ 0.05


@pytest.mark.parametrize("distance", [0.0, 0.0004])
def test_on_the_threshold_no_number_would_do(distance: float) -> None:
    assert required_sample_size([Spread(3, 100, 0.01, 0.2, 0.2)], distance).words == NEVER
    assert (
        enough_for_all(
            [RequiredSampleSize(problems=30), required_sample_size([Spread(3, 100, 0.01, 0.2, 0.2)], distance)]
        ).words
        == NEVER
    )


def test_a_claim_needs_the_most_of_its_comparisons() -> None:
    assert (
        enough_for_all(
            [RequiredSampleSize(seeds=4), RequiredSampleSize(seeds=12), RequiredSampleSize(problems=877)]
        ).words
        == "about 12 seeds and about 880 problems"
    )


def test_two_intervals_that_must_not_touch_need_more_than_their_difference() -> None:
    one = Spread(1, 100, 0.0, 0.25, 0.25)
    assert required_sample_size([one, one], 0.1).problems == pytest.approx(required_sample_size([one], 0.05).problems)


def drawn(rng: np.random.Generator, k: int, n: int) -> Floats:
    """Differences by seed and problem: 0.1 on average, seeds ± 0.1, problems ± 0.3, the rest ± 0.3."""
    return (
        0.1 + 0.1 * rng.standard_normal((k, 1)) + 0.3 * rng.standard_normal((1, n)) + 0.3 * rng.standard_normal((k, n))
    )


def test_studies_of_the_needed_size_are_as_narrow_as_was_said() -> None:
    """From studies of 6 seeds: their median need, then studies of that size have that half-width."""
    rng = np.random.default_rng(0)
    seeds = [required_sample_size([spread_of(drawn(rng, 6, 300))], 0.07).seeds for _ in range(100)]
    size = int(np.median(seeds))
    half = np.median([half_width_over_both(spread_of(drawn(rng, size, 300)), size, 300) for _ in range(100)])
    assert half == pytest.approx(0.07, rel=0.15)
