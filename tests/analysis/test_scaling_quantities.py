"""The numbers that claims about scaling are about: right where constants are known, none where there is no result."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scaling_studies import E_MAX, K_MAX, N0, N1, SIZES, noisy_study, with_losses

from compositionality.analysis.scaling.points import Points
from compositionality.analysis.scaling.quantities import quantities
from compositionality.analysis.scaling.run import ScalingSettings, fit_scaling
from compositionality.errors import UserError
from compositionality.evaluate.claims.catalogue import read_catalogue
from compositionality.evaluate.claims.decide import claim_rows
from compositionality.evaluate.quantities import read_quantities
from compositionality.types import Decision, Metric

CATALOGUE = read_catalogue("scaling_law")
OF_FITS = [one for one in CATALOGUE.claims if one.comparisons[0].metric is Metric.SCALING]


def slope(size: float) -> float:
    return K_MAX / (1 + N0 / size)


def found(points: Points) -> dict[str, object]:
    return {one.name: one for one in quantities(points, 0.5, 40, 0)}


def write(points: Points, path: Path) -> Path:
    runs = [points.runs[number] for number in points.run]
    columns = {"run": runs, "size": points.size, "step": points.step, "flops": points.resource, "loss": points.loss}
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def test_quantities_of_a_study_with_known_constants_are_within_twice_their_intervals() -> None:
    """Nominal coverage is tested of the intervals that these are made of; one study may miss by chance."""
    told = found(noisy_study(3, between=0.005, noise=0.005))
    true = {"slope-rise": slope(SIZES[-1]) - slope(SIZES[0]), "slope-share": 1 / (1 + N0 / SIZES[-1])}
    start = (-E_MAX / (1 + N1 / size) - slope(size) * np.log(512 / 3000) for size in SIZES[-2:])
    lower, upper = start
    true |= {"start-gap": upper - lower, "late-error": 0.0, "largest-error": 0.0, "late-largest-error": 0.0}
    for name, expected in true.items():
        one = told[name]
        assert not one.reason
        width = one.interval.high - one.interval.low
        assert abs(one.value - expected) < width < 0.5, name


def test_a_curve_that_flattens_errs_on_the_hopeful_side() -> None:
    points = noisy_study(4)
    first = {run: np.log(points.loss[(points.run == run) & (points.step == 6)])[0] for run in np.unique(points.run)}
    kept = np.where(points.step > 6, [first[run] for run in points.run], np.log(points.loss))
    one = found(with_losses(points, np.exp(kept)))["late-error"]
    assert one.interval.high < 0


def test_what_is_no_result_has_a_reason_and_no_value() -> None:
    single = found(noisy_study(1, n_runs=2).where(noisy_study(1, n_runs=2).run % 2 == 0))
    assert single["slope-rise"].reason == "a size has one run only: no interval"
    assert single["slope-rise"].value is not None
    few = noisy_study(1)
    two = found(few.where(np.isin(few.size, SIZES[:2])))
    assert two["slope-share"].value is None
    assert "needs 3 sizes of models; here are 2" in two["slope-share"].reason
    level = found(with_losses(few, np.full(len(few), 0.5)))
    assert level["slope-share"].reason == "all runs are alike: no interval"


def test_claims_read_them_and_what_is_no_result_is_not_testable(tmp_path: Path) -> None:
    csv = write(noisy_study(3), tmp_path / "points.csv")
    out = fit_scaling(ScalingSettings([str(csv)], tmp_path / "out", laws=["log_linear"], draws=40))
    scaling = read_quantities([f"seed0:{out / 'scaling.json'}"])
    assert scaling.n_seeds == 4
    open_claims = [one for one in OF_FITS if one.comparisons[0].results == "scaling"]
    bare = [type(one)(**{**vars_of(one), "comparisons": ungated(one)}) for one in open_claims]
    decided = {row["claim"]: row for row in claim_rows(bare, {"scaling": scaling})}
    assert decided["S1"]["decision"] is Decision.SUPPORTED
    assert decided["S1"]["comparisons"][0]["comparison"] == "scaling: slope-rise > 0"
    points = noisy_study(3)
    small = write(points.where(np.isin(points.size, SIZES[:2])), tmp_path / "small.csv")
    out = fit_scaling(ScalingSettings([str(small)], tmp_path / "few", laws=["log_linear"], draws=40))
    rows = claim_rows(bare, {"scaling": read_quantities([f"seed0:{out / 'scaling.json'}"])})
    told = {row["claim"]: row for row in rows}
    assert told["S3"]["decision"] is Decision.NOT_TESTABLE
    assert "needs 3 sizes" in told["S3"]["reason"]


def vars_of(one: object) -> dict[str, object]:
    return {name: getattr(one, name) for name in one.__dataclass_fields__}


def ungated(claim: object) -> tuple[object, ...]:
    return tuple(type(one)(**{**vars_of(one), "gates": ()}) for one in claim.comparisons)


def test_p18_what_is_no_fit_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none.json: missing; run examples/fit_scaling.py"):
        read_quantities([f"seed0:{tmp_path / 'none.json'}"])
    with pytest.raises(UserError, match=r"one fit has the runs of all seeds; give one scaling.json"):
        read_quantities(["seed0:a/scaling.json", "seed1:b/scaling.json"])
