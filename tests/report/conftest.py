"""A report of a whole study, made once."""

from pathlib import Path

import pytest
from report_study import EVERYTHING, make_study

from compositionality.report.page.build import report
from compositionality.report.page.inputs import ReportSettings


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
