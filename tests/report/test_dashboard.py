"""What wandb is sent of a report: a real offline run, read back."""

import base64
import json
from pathlib import Path

import pytest
from offline_wandb import history, records

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.report.dashboard import send_report
from compositionality.report.page.inputs import ReportSettings

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
CLAIM = {
    "claim": "chain", "text": "RL gives more right chains", "decision": "supported", "origin": "own",
    "comparisons": [{"comparison": "heldout L3: rl − stage1 > 0", "difference": 0.49, "values": [0.4, 0.5]}],
}  # fmt: skip


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study called composition, with claims and a report of one table and one figure."""
    study = tmp_path / "composition"
    study.mkdir()
    (study / "claims.json").write_text(json.dumps({"claims": [CLAIM], "controls": [], "notes": []}))
    with new_artefact(study / "report", Recipe("report", {}, {})) as partial:
        (partial / "tables").mkdir(parents=True)
        (partial / "figures").mkdir()
        (partial / "index.html").write_text("<p>the page</p>")
        (partial / "tables" / "accuracy.csv").write_text("model,accuracy\nstage1,0.03\nrl-level2,\n")
        (partial / "figures" / "accuracy.png").write_bytes(base64.b64decode(PIXEL))
    return study


def test_page_figures_tables_and_decisions_are_sent(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WANDB_MODE": "offline", "WANDB_RUN_GROUP": "composition", "WANDB_SILENT": "true"}.items():
        monkeypatch.setenv(name, value)
    send_report(ReportSettings(study=study, output=study / "report"))
    (run,) = study.glob("report.wandb/wandb/offline-run-*")
    (found,) = [record.run for record in records(run) if record.HasField("run")]
    assert (found.run_group, found.job_type, found.display_name) == ("composition", "report", "report/composition")
    sent = {name.partition(".")[0] for row in history(run) for name in row if "/" in name or name.startswith("page")}
    assert sent == {"page", "figures/accuracy", "tables/accuracy", "tables/claims"}
    tables = {
        path.name.partition("_")[0]: json.loads(path.read_text()) for path in run.glob("files/media/table/tables/*")
    }
    assert tables["accuracy"]["data"] == [["stage1", 0.03], ["rl-level2", None]]
    row = dict(zip(tables["claims"]["columns"], tables["claims"]["data"][0], strict=True))
    assert (row["claim"], row["claim_decision"], row["difference"]) == ("chain", "supported", 0.49)
    summary = {item.key: item.value_json for record in records(run) for item in record.summary.update}
    assert json.loads(summary["claims/chain"]) == "supported"
    assert json.loads(summary["estimates/heldout L3: rl − stage1 > 0"]) == 0.49


def test_nothing_is_sent_where_wandb_cannot_be_used(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    send_report(ReportSettings(study=study, output=study / "report"))
    assert sorted(path.name for path in study.iterdir()) == ["claims.json", "report"]
