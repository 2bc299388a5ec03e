"""Scaling laws: constants are found again, intervals cover them, predictions can fail; published figures follow."""

from dataclasses import replace

import numpy as np
import pytest
from scaling_studies import K_MAX, N0, SIZES, empty_points, noisy_study, study_of, with_losses

from compositionality.analysis.scaling.extrapolate import Region, extrapolate
from compositionality.analysis.scaling.fit import akaike, bootstrap_runs, fit_law, intervals, r_squared
from compositionality.analysis.scaling.laws import LAWS, law_named
from compositionality.analysis.scaling.published import published_fits
from compositionality.errors import UserError


@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_found_again(name: str) -> None:
    points, _, _ = study_of(law_named(name), seed=3)
    fit = fit_law(law_named(name), points)
    assert np.abs(fit.log_loss(points) - np.log(points.loss)).max() < 1e-3
    assert fit.starts >= 1


def test_constants_of_the_papers_law_are_found_again() -> None:
    points = noisy_study(0, between=0, noise=0)
    values = fit_law(law_named("saturating_both"), points).values()
    assert values["K_max"] == pytest.approx(K_MAX, rel=1e-3)
    assert values["N0"] == pytest.approx(N0, rel=1e-3)


@pytest.mark.slow
@pytest.mark.long
def test_intervals_cover_at_their_nominal_rate() -> None:
    studies, covered = 80, {"K_max": 0, "N0": 0}
    for seed in range(studies):
        points = noisy_study(seed)
        fit = fit_law(law_named("saturating_slope"), points, starts=3)
        drawn = bootstrap_runs(fit, points, 60, seed)
        assert drawn is not None
        found = intervals(fit, drawn)
        for name, value in (("K_max", K_MAX), ("N0", N0)):
            covered[name] += found[name, None].low <= value <= found[name, None].high
    assert all(count / studies >= 0.88 for count in covered.values()), covered  # 0.95 − 3 standard errors


def test_predictions_of_the_true_law_hold_and_of_a_wrong_one_do_not() -> None:
    """Of a new size where no parameter is on a bound; one that is says that the sizes do not determine it."""
    every = [extrapolate(law_named("saturating_both"), noisy_study(seed), 0.5, draws=40) for seed in range(6)]
    right = [found for found in every if not found.fit.on_bound]
    assert len(right) >= 3
    for region in Region:
        shares = [one.covered for found in right for one in found.regions if one.region == region]
        assert np.mean(shares) > 0.85, region
    wrong = extrapolate(law_named("power"), noisy_study(0), 0.5, draws=40)
    assert {one.region for one in wrong.regions} == set(Region)
    assert all(one.covered < 0.6 for one in wrong.regions if one.covered is not None)
    assert max(one.error for one in wrong.regions) > 3 * max(one.error for one in right[0].regions)


def test_a_law_with_parameters_of_each_size_predicts_later_evaluations_only() -> None:
    found = extrapolate(law_named("saturating_slope"), noisy_study(1), 0.5, draws=20)
    assert [one.region for one in found.regions] == [Region.LATE]
    with pytest.raises(UserError, match="predicts no other size"):
        found.fit.frame.log_loss(found.fit.theta, np.array([5e4]), np.array([512.0]))


def test_held_out_points_do_not_touch_the_fit() -> None:
    points = noisy_study(2)
    left_out = ~points.early(0.5) | (points.size == SIZES[-1])
    changed = with_losses(points, np.where(left_out, points.loss * 0.5, points.loss))
    fits = [extrapolate(law_named("saturating_both"), one, 0.5, draws=20).fit for one in (points, changed)]
    assert (fits[0].theta == fits[1].theta).all()


def test_r_squared_is_of_each_size_and_aic_prefers_the_law_that_made_the_data() -> None:
    points = noisy_study(4)
    right, wrong = (fit_law(law_named(name), points) for name in ("saturating_both", "power"))
    assert akaike(right, points) < akaike(wrong, points)
    found = r_squared(right, points)
    assert list(found) == list(SIZES)
    assert found[SIZES[0]] < found[SIZES[-1]]


def test_the_same_seed_gives_the_same_fit() -> None:
    points = noisy_study(5)
    first, second = (fit_law(law_named("sigmoid"), points, seed=7) for _ in range(2))
    assert (first.theta == second.theta).all()


def test_a_parameter_on_its_bound_is_named() -> None:
    assert "L_inf" in fit_law(law_named("power_with_floor"), noisy_study(0)).on_bound


def test_one_run_of_a_size_gives_no_interval() -> None:
    points = noisy_study(0, n_runs=1)
    fit = fit_law(law_named("saturating_both"), points)
    assert bootstrap_runs(fit, points) is None
    assert extrapolate(law_named("saturating_both"), points, 0.5).regions[0].covered is None


@pytest.mark.parametrize(
    ("name", "sizes", "told"),
    [
        ("saturating_both", SIZES[:3], "saturating_both: needs 4 sizes of models; here are 3"),
        ("power", SIZES[:1], "power: needs 3 sizes"),
    ],
)
def test_p18_too_few_sizes(name: str, sizes: tuple[float, ...], told: str) -> None:
    with pytest.raises(UserError, match=told):
        fit_law(law_named(name), empty_points(2, sizes))


def test_p18_too_few_evaluations() -> None:
    points = empty_points(1)
    with pytest.raises(UserError, match="sigmoid: has 14 parameters and needs more evaluations than that; here are 10"):
        fit_law(law_named("sigmoid"), points.where(points.step <= 2))


def test_p18_what_has_no_logarithm_is_named() -> None:
    points = empty_points(1)
    with pytest.raises(UserError, match=r"10000-0, step 1: loss 0 has no logarithm"):
        replace(points, loss=points.loss * 0)


def test_published_constants_give_the_published_slopes() -> None:
    """k(72B): 0.114 and 0.122 in the figure of base models; half of K_max at N0."""
    base = [one for one in published_fits() if (one.family, one.resource) == ("Qwen2.5 base", "compute")]
    assert [round(one.slope(72), 3) for one in base] == [0.114, 0.122]
    assert all(one.slope(one.N0) == pytest.approx(one.K_max / 2) for one in published_fits())
    assert len(published_fits()) == 10
