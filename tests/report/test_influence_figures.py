"""Figures of influence: a page of behaviour injection has them, from the files that examples/influence.py writes."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from test_figure import summary_file

from compositionality.analysis.influence import SCHEMA
from compositionality.data.artefact import Recipe, new_artefact
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.report.influence_figures import cells_of
from compositionality.report.page.build import report
from compositionality.report.page.inputs import INJECTION, ReportSettings, find_inputs
from compositionality.report.page.results import influence

LABELS = ["igsm L2", "igsm L3"]


def influence_file(path: Path) -> Path:
    """Eight queries with 0 to 7 of 7 completions right, each twice as influential as the one before."""
    rows = [
        {"problem": n, "level": 2 + n % 2, "group": "igsm", "correct": n, "samples": 7, "update_norm": 1.0,
         "influence": 2.0**n, "influence_on_others": 0.0}
        for n in range(8)
    ]  # fmt: skip
    pairs = {"labels": LABELS, "means": [[4.0, -1.0], [1.0, 2.0]]}
    with new_artefact(path, Recipe("influence", {}), {"co_influence": pairs}) as partial:
        write_table(pa.Table.from_pylist(rows, schema=SCHEMA), partial)
    return path


@pytest.fixture
def settings(tmp_path: Path) -> ReportSettings:
    study = tmp_path / "tiny-injection"
    summary = json.loads(summary_file(tmp_path / "seeds.json", ("sft-vanilla", "sft-bridge")).read_text())
    summary |= {"sampling": {"n_samples": 1, "temperature": 0.0}, "differences": [], "composed_differences": []}
    with new_artefact(study / INJECTION / "seeds.json", Recipe("summarise_seeds", {})) as partial:
        partial.write_text(json.dumps(summary))
    for model in ("sft-vanilla", "sft-bridge"):
        influence_file(study / "influence" / model / "influence.parquet")
    return ReportSettings(study, study / "report", section=INJECTION)


def test_rows_are_those_of_every_seed_and_model(settings: ReportSettings) -> None:
    by_accuracy, pairs = influence(find_inputs(settings))
    assert len(by_accuracy) == 2 * 8
    mine = [row for row in by_accuracy if (row["model"], row["seed"]) == ("sft-bridge", "seed0")]
    assert [(row["correct"], row["n"], row["influence"]) for row in mine] == [(n, 1, 2.0**n) for n in range(8)]
    mine = [row for row in pairs if row["model"] == "sft-bridge"]
    assert np.allclose(cells_of(mine, LABELS), [[1, -0.25], [0.25, 0.5]])
    assert np.isnan(cells_of(mine, ["none"])).all()


def test_the_page_of_behaviour_injection(settings: ReportSettings) -> None:
    html = report(settings).read_text()
    for name in ("accuracy", "influence", "influence_pairs"):
        assert f'<section id="{name}"' in html
    assert "Cen et al." not in html  # no claims were decided
    assert "section43" not in html
    assert (settings.output / "tables" / "influence.csv").is_file()
    with pytest.raises(UserError, match=r"section41_42/seeds.json: no such file; make it with bash bash/section41_42"):
        report(ReportSettings(settings.study, settings.output))
