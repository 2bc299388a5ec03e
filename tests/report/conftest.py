"""A report of a whole study, made once."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_study import EVERYTHING, SIZES, evaluated, make_injection, make_study

from compositionality.analysis.scaling import ScalingSettings, fit_scaling
from compositionality.report.page.build import report
from compositionality.report.page.inputs import SCALING, ReportSettings


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> ReportSettings:
    """A study of two seeds with everything in it, its report written. Not to be changed."""
    made = make_study(tmp_path_factory.mktemp("study"), n_seeds=2, parts=EVERYTHING)
    report(made)
    return made


@pytest.fixture(scope="session")
def page(settings: ReportSettings) -> Path:
    """Its page."""
    return settings.output / "index.html"


@pytest.fixture(scope="session")
def injection(tmp_path_factory: pytest.TempPathFactory) -> ReportSettings:
    """A study of behaviour injection with decided claims, its report written. Not to be changed."""
    made = make_injection(tmp_path_factory.mktemp("injection"))
    report(made)
    return made


@pytest.fixture(scope="session")
def fits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sizes, one of six digits, two runs each, of which the loss falls as a power law with slopes of its own."""
    folder, random = tmp_path_factory.mktemp("scaling"), np.random.default_rng(0)
    rows = [
        {"run": f"{size:g}-{run}", "size": size, "step": step, "flops": 6 * size * 1e4 * step,
         "accuracy": 1 - 0.9 * step ** (-0.3 / (1 + 1e5 / size)) * np.exp(random.normal(0, 0.01))}
        for size in SIZES
        for run in range(2)
        for step in range(1, 9)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(folder / "runs.csv", index=False)
    laws = ["log_linear", "saturating_slope", "power"]
    return fit_scaling(ScalingSettings([str(folder / "runs.csv")], folder, laws=laws, draws=20)) / "scaling.json"


@pytest.fixture(scope="session")
def scaling_study(fits: Path, tmp_path_factory: pytest.TempPathFactory) -> ReportSettings:
    """A study of scaling laws with these fits, no claim of which is decided, its report written. Not to be changed."""
    study = tmp_path_factory.mktemp("page") / "scaling"
    shares = {(arm, "holdout", 2): 0.5 for arm in ("base-85k", "rl-85k-reuse-1", "rl-85k-reuse-5")}
    evaluated(study / "seed0" / SCALING, shares)
    shutil.copytree(fits.parent, study / SCALING / "flops")
    made = ReportSettings(study, study / "report", section=SCALING)
    report(made)
    return made
