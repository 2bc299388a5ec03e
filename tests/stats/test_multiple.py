"""p-values agree with the intervals, and Holm's procedure with its definition."""

from dataclasses import replace

import numpy as np
import pytest

from compositionality.stats.multiple import SMALLEST, holm, p_value
from compositionality.stats.random_effects import contrast_over_seeds
from compositionality.types import Estimate, Interval


def estimate(seeds: int, gain: float, start: int, n: int = 60) -> Estimate:
    """A gain of an arm over its base, both right by chance."""
    rng = np.random.default_rng(start)
    ones = np.ones((seeds, n), np.int64)
    found = contrast_over_seeds(rng.binomial(1, 0.4 + gain, ones.shape), ones, rng.binomial(1, 0.4, ones.shape), ones)
    assert found is not None
    return found


@pytest.mark.parametrize("seeds", [1, 4])
def test_p_is_below_5_percent_where_the_interval_leaves_the_threshold_out(seeds: int) -> None:
    for start in range(10):
        found = estimate(seeds, 0.15, start)
        for threshold in (-0.1, 0.0, 0.05, 0.1, 0.2, 0.4):
            out = not found.low <= threshold <= found.high
            assert (p_value(found, threshold) < 0.05) == out
        assert p_value(found, found.low) == pytest.approx(0.05)
        assert p_value(found, found.high) == pytest.approx(0.05)
        assert p_value(found, found.value) == 1.0


def test_one_seeds_p_is_students() -> None:
    from scipy.stats import ttest_1samp

    rng = np.random.default_rng(0)
    ones = np.ones((1, 50), np.int64)
    model, base = rng.binomial(1, 0.7, (1, 50)), rng.binomial(1, 0.5, (1, 50))
    found = contrast_over_seeds(model, ones, base, ones)
    assert found is not None
    assert p_value(found, 0.05) == pytest.approx(ttest_1samp((model - base)[0], 0.05).pvalue, rel=1e-3)


def test_where_nothing_is_known_of_the_spread_nothing_is_shown() -> None:
    assert p_value(Estimate(0.5, 1, Interval(0.1, 0.9)), 0.0) == 1.0
    far = replace(estimate(1, 0.5, 0, n=5000), value=0.5, over_problems=Interval(0.499, 0.501))
    assert p_value(far, 0.0) == SMALLEST


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.02, 1.0, 1.0, 1.0]) == pytest.approx([0.08, 1.0, 1.0, 1.0])
    assert holm([]) == []
