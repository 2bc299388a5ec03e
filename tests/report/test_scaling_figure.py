"""The figure of a scaling study, from simulated runs; what it refuses."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from compositionality.analysis.scaling import ScalingSettings, fit_scaling
from compositionality.data.artefact import read_manifest
from compositionality.errors import UserError
from compositionality.report.draw_scaling import ScalingFigureSettings, chosen, draw_scaling
from compositionality.report.scaling_figures import scaling


@pytest.fixture(scope="module")
def fits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sizes, two runs each, of which the loss falls as a power law with slopes of its own."""
    folder, random = tmp_path_factory.mktemp("scaling"), np.random.default_rng(0)
    rows = [
        {"run": f"{size:g}-{run}", "size": size, "step": step, "flops": 6 * size * 1e4 * step,
         "accuracy": 1 - 0.9 * step ** (-0.3 / (1 + 1e5 / size)) * np.exp(random.normal(0, 0.01))}
        for size in (1e4, 1e5, 1e6, 1e7)
        for run in range(2)
        for step in range(1, 9)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(folder / "runs.csv", index=False)
    laws = ["log_linear", "saturating_slope", "power"]
    return fit_scaling(ScalingSettings([str(folder / "runs.csv")], folder, laws=laws, draws=20)) / "scaling.json"


def test_it_is_drawn_from_the_laws_that_describe_and_predict_best(fits: Path, tmp_path: Path) -> None:
    paths = draw_scaling(ScalingFigureSettings(fits, tmp_path / "figure"))
    assert [path.suffix for path in paths] == [".svg", ".png", ".pdf"]
    shown = read_manifest(paths[0])
    assert shown is not None
    laws = {one["law"]: one for one in json.loads(fits.read_text())["laws"]}
    assert shown.settings["fitted"] == min(laws, key=lambda name: laws[name]["aic"])
    assert shown.settings["predicting"] == "power"  # the others say nothing of a new size


def test_every_point_and_its_prediction_is_in_the_figure(fits: Path) -> None:
    content, fitted, predicting = chosen(ScalingFigureSettings(fits, Path("x"), fitted="saturating_slope"))
    panels = scaling(content, fitted, predicting).axes
    drawn = [line for line in panels[0].lines if line.get_marker() == "."]
    assert len(drawn) == 4
    assert sum(len(line.get_xdata()) for line in drawn) == 4 * 8
    left_out = sum(len(line.get_xdata()) for line in panels[1].lines if line.get_marker() == ".")
    assert left_out == 3 * 4 + 8  # the later half of three sizes, all of the largest
    assert len(panels[2].containers) == 4


def test_p18_other_files_and_laws_are_refused(fits: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="cubic: no such law was fitted; there are: log_linear, saturating_slope, power"
    ):
        draw_scaling(ScalingFigureSettings(fits, tmp_path / "x", fitted="cubic"))
    damaged = fits.with_name("scaling_points.csv")
    with pytest.raises(UserError, match="damaged"):
        draw_scaling(ScalingFigureSettings(damaged, tmp_path / "x"))
    assert not list(tmp_path.iterdir())
