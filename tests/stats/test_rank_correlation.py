"""Rank correlations of arms: beside scipy's, at the ends, and where nothing is there to find."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from compositionality.stats.ranks import rank_correlation


@pytest.mark.parametrize("sign", [1, -1])
def test_arms_that_are_ranked_alike(sign: int) -> None:
    values = np.array([[1.0, 2.0, 5.0, 3.0], [10.0, 20.0, 21.0, 20.5]])
    found = rank_correlation(values, sign * values**3)
    assert found.by_seed == pytest.approx((sign, sign))
    assert found.over_seeds == pytest.approx((sign, sign))
    assert found.p == pytest.approx(2 / 24)  # this order and the reverse, of 4!


def test_each_seed_is_as_scipy_has_it() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.integers(0, 6, (5, 7)).astype(float), rng.normal(size=(5, 7))
    found = rank_correlation(one, other)
    assert found.by_seed == pytest.approx([spearmanr(*seed).statistic for seed in zip(one, other, strict=True)])
    assert found.value == pytest.approx(np.mean(found.by_seed))


def test_one_seed_has_no_interval_and_equal_values_no_order() -> None:
    found = rank_correlation(np.ones((1, 5)), np.arange(5.0)[None])
    assert (found.value, found.over_seeds, found.p) == (0, None, 1)


def test_p_of_arms_that_have_nothing_in_common() -> None:
    """Below 0.05 in about a study of 20, with all orders and with many; the same again for the same values."""
    rng = np.random.default_rng(2)
    for arms in (5, 9):
        drawn = [(rng.normal(size=(2, arms)), rng.normal(size=(2, arms))) for _ in range(200)]
        shares = [rank_correlation(*one).p <= 0.05 for one in drawn]
        assert 0.01 <= np.mean(shares) <= 0.1
        assert rank_correlation(*drawn[0]) == rank_correlation(*drawn[0])
