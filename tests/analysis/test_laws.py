"""Scaling laws: constants are found again, intervals cover them; published figures follow."""

from pathlib import Path

import numpy as np
import pytest
from scaling_studies import K_MAX, N0, SIZES, empty_points, noisy_study, study_of

import compositionality.analysis
from compositionality.analysis.laws import LAWS, akaike, bootstrap, fit_law, parameter_rows, r_squared
from compositionality.errors import UserError
from compositionality.yaml_files import read_yaml_mapping

STARTS = "compositionality.analysis.laws.STARTS"
PUBLISHED = read_yaml_mapping(Path(compositionality.analysis.__file__).with_name("published.yaml"))


@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_found_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    points, _ = study_of(LAWS[name], seed=3)
    monkeypatch.setattr(STARTS, 6)
    fit = fit_law(LAWS[name], points)
    assert np.abs(fit.log_loss(points) - np.log(points["loss"])).max() < 1e-3
    assert fit.starts >= 1


def test_constants_of_the_papers_law_are_found_again() -> None:
    rows = parameter_rows(fit_law(LAWS["saturating_both"], noisy_study(0, between=0, noise=0)))
    values = {row["name"]: row["value"] for row in rows}
    assert values["K_max"] == pytest.approx(K_MAX, rel=1e-3)
    assert values["N0"] == pytest.approx(N0, rel=1e-3)


@pytest.mark.slow
@pytest.mark.long
def test_intervals_cover_at_their_nominal_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STARTS, 3)
    studies, covered = 80, {"K_max": 0, "N0": 0}
    for seed in range(studies):
        points = noisy_study(seed)
        fit = bootstrap(fit_law(LAWS["saturating_slope"], points), points, 20, seed)
        rows = {row["name"]: row for row in parameter_rows(fit)}
        for name, value in (("K_max", K_MAX), ("N0", N0)):
            covered[name] += rows[name]["low"] <= value <= rows[name]["high"]
    assert all(count / studies >= 0.88 for count in covered.values()), covered  # 0.95 − 3 standard errors


def test_r_squared_is_of_each_size_and_aic_prefers_the_law_that_made_the_data() -> None:
    points = noisy_study(4)
    right, wrong = (fit_law(LAWS[name], points) for name in ("saturating_both", "power"))
    assert akaike(right, points) < akaike(wrong, points)
    by_size = r_squared(right, points)
    assert list(by_size) == list(SIZES)
    assert by_size[SIZES[0]] < by_size[SIZES[-1]]


def test_the_same_seed_gives_the_same_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STARTS, 3)
    points = noisy_study(5)
    first, second = (fit_law(LAWS["saturating_both"], points, seed=7) for _ in range(2))
    assert (first.theta == second.theta).all()


def test_a_parameter_on_its_bound_is_named_and_has_no_interval() -> None:
    points = noisy_study(0)
    fit = bootstrap(fit_law(LAWS["power_with_floor"], points), points, 20)
    assert "L_inf" in fit.on_bound
    assert {row["name"] for row in parameter_rows(fit) if row["low"] is None} == set(fit.on_bound)
    with pytest.raises(UserError, match="power_with_floor: L_inf on a bound: these points do not determine it"):
        fit.refuse_bounds()


def test_a_law_with_parameters_of_each_size_predicts_no_other_size() -> None:
    points, fit = study_of(LAWS["saturating_slope"])
    with pytest.raises(UserError, match="cannot predict other sizes"):
        fit.log_loss(points.assign(size=5e4))


def test_p18_too_few_sizes_or_evaluations() -> None:
    points = empty_points(1)
    few = points[points["step"] <= 2]
    for name, table, told in (
        ("saturating_both", points[points["size"].isin(SIZES[:3])], "needs 4 sizes of models; the points have 3"),
        ("sigmoid", few, "has 14 parameters and needs more evaluations than that; there are 10"),
    ):
        with pytest.raises(UserError, match=f"{name}: {told}"):
            fit_law(LAWS[name], table)


def test_published_constants_give_the_published_slopes() -> None:
    """k(72B): 0.114 and 0.122 in the figure of base models."""
    fits = PUBLISHED["fits"]
    base = [fit for fit in fits if (fit["family"], fit["resource"]) == ("Qwen2.5 base", "compute")]
    assert [round(fit["K_max"] / (1 + fit["N0"] / 72), 3) for fit in base] == [0.114, 0.122]
    assert len(fits) == 10
