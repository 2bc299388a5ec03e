"""Predictions can fail; the figures of claims are right where constants are known, none where there is no result."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scaling_studies import E_MAX, K_MAX, N0, N1, SIZES, noisy_study, write

from compositionality.analysis.laws import LAWS
from compositionality.analysis.predict import LATE, REGIONS, FittedStudy, error_rows, extrapolate, figure_row
from compositionality.analysis.scaling import ScalingSettings, fit_scaling
from compositionality.errors import UserError
from compositionality.evaluate.claims.decide import claim_rows
from compositionality.evaluate.claims.model import read_claims_file
from compositionality.evaluate.results import read_figures
from compositionality.evaluate.types import Decision, Metric

CATALOGUE = read_claims_file("scaling_law")
OF_FITS = [one for one in CATALOGUE.claims if one.comparisons[0].metric is Metric.SCALING]


@pytest.fixture(autouse=True)
def few_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of these points a few find the optimum."""
    monkeypatch.setattr("compositionality.analysis.laws.STARTS", 3)


def test_predictions_of_the_true_law_hold_and_of_a_wrong_one_do_not() -> None:
    """Of a new size where no parameter is on a bound; one that is says that the sizes do not determine it."""
    both = [extrapolate(LAWS["saturating_both"], noisy_study(seed), 0.5, draws=20) for seed in range(6)]
    right = [{row["region"]: row for row in error_rows(curves)} for fit, curves in both if not fit.on_bound]
    assert len(right) >= 3
    for region in REGIONS:
        assert np.mean([rows[region]["covered"] for rows in right]) > 0.85, region
    wrong = error_rows(extrapolate(LAWS["power"], noisy_study(0), 0.5, draws=40)[1])
    assert [row["region"] for row in wrong] == list(REGIONS)
    assert all(row["covered"] < 0.6 for row in wrong)
    assert max(row["error"] for row in wrong) > 3 * max(row["error"] for row in right[0].values())


def test_a_law_with_parameters_of_each_size_predicts_later_evaluations_only() -> None:
    _, curves = extrapolate(LAWS["saturating_slope"], noisy_study(1), 0.5, draws=20)
    assert set(curves["region"]) == {LATE}
    assert set(curves["size"]) == set(SIZES)


def test_held_out_points_do_not_touch_the_fit() -> None:
    points = noisy_study(2)
    left_out = (points["step"] > 6) | (points["size"] == SIZES[-1])
    changed = points.assign(loss=points["loss"].where(~left_out, points["loss"] * 0.5))
    first, second = (extrapolate(LAWS["saturating_both"], one, 0.5, draws=20) for one in (points, changed))
    assert (first[0].theta == second[0].theta).all()
    assert not np.allclose(first[1]["error"], second[1]["error"])


def test_one_run_of_a_size_gives_no_interval() -> None:
    _, curves = extrapolate(LAWS["saturating_both"], noisy_study(0, n_runs=1), 0.5)
    rows = error_rows(curves)
    assert {row["covered"] for row in rows} == {None}
    assert {curve["high"] for row in rows for curve in row["curves"]} == {None}


def slope(size: float) -> float:
    return K_MAX / (1 + N0 / size)


def figure_of(points: pd.DataFrame, name: str) -> dict[str, Any]:
    return figure_row(FittedStudy(points, 0.5, 20, 0), name)


def test_figures_of_a_study_with_known_constants_are_within_twice_their_intervals() -> None:
    """Nominal coverage is tested of the intervals that these are made of; one study may miss by chance."""
    study = FittedStudy(noisy_study(3, between=0.005, noise=0.005), 0.5, 40, 0)
    true = {"slope-rise": slope(SIZES[-1]) - slope(SIZES[0]), "slope-share": 1 / (1 + N0 / SIZES[-1])}
    lower, upper = (-E_MAX / (1 + N1 / size) - slope(size) * np.log(512 / 3000) for size in SIZES[-2:])
    true |= {"start-gap": upper - lower, "late-error": 0.0, "largest-error": 0.0, "late-largest-error": 0.0}
    for name, expected in true.items():
        row = figure_row(study, name)
        assert not row["reason"]
        width = row["high"] - row["low"]
        assert abs(row["value"] - expected) < width < 0.5, name


def test_a_curve_that_flattens_errs_on_the_hopeful_side() -> None:
    points = noisy_study(4)
    at_half = points["run"].map(points[points["step"] == 6].set_index("run")["loss"])
    flat = points.assign(loss=points["loss"].where(points["step"] <= 6, at_half))
    assert figure_of(flat, "late-error")["high"] < 0


def test_what_is_no_result_has_a_reason_and_no_value() -> None:
    single = figure_of(noisy_study(1, n_runs=1), "slope-rise")
    assert single["reason"] == "a size has only one run: no interval"
    assert single["value"] is not None
    few = noisy_study(1)
    two = figure_of(few[few["size"].isin(SIZES[:2])], "slope-share")
    assert two["value"] is None
    assert "needs 3 sizes of models; the points have 2" in two["reason"]
    assert figure_of(few.assign(loss=0.5), "start-gap")["reason"] == "all runs are equal: no interval"


def test_claims_read_them_and_what_is_no_result_is_not_testable(tmp_path: Path) -> None:
    points = noisy_study(3)
    open_claims = [one for one in OF_FITS if one.comparisons[0].results == "scaling"]
    bare = [replace(one, comparisons=tuple(replace(each, gates=()) for each in one.comparisons)) for one in open_claims]
    told = []
    for name, part in (("all", points), ("few", points[points["size"].isin(SIZES[:2])])):
        csv = write(part, tmp_path / f"{name}.csv")
        out = fit_scaling(ScalingSettings([str(csv)], tmp_path / name, laws=["log_linear"], draws=20))
        scaling = read_figures([f"seed0:{out / 'scaling.json'}"])
        assert scaling.n_seeds == 4
        told.append({row["claim"]: row for row in claim_rows(bare, {"scaling": scaling})})
    whole, few = told
    assert whole["S1"]["decision"] is Decision.SUPPORTED
    assert whole["S1"]["comparisons"][0]["comparison"] == "scaling: slope-rise > 0"
    assert few["S3"]["decision"] is Decision.NOT_TESTABLE
    assert "needs 3 sizes" in few["S3"]["reason"]


def test_p18_what_is_no_fit_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none.json: missing; run examples/fit_scaling.py"):
        read_figures([f"seed0:{tmp_path / 'none.json'}"])
    with pytest.raises(UserError, match=r"a fit has the runs of all seeds; give one scaling.json"):
        read_figures(["seed0:a/scaling.json", "seed1:b/scaling.json"])
