"""What wandb is sent of a report: a real offline run, read back."""

import base64
import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from offline_wandb import artifacts, history, records

from compositionality.data.artefact import Recipe, file_hash, new_artefact
from compositionality.report.dashboard import send_report
from compositionality.report.page.inputs import Inputs, ReportSettings
from compositionality.train.log import RunLog
from compositionality.train.wandb_artifacts import send_artifacts, send_models, send_result

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
    send_report(Inputs(ReportSettings(study=study, output=study / "report"), (), {}))
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
    send_report(Inputs(ReportSettings(study=study, output=study / "report"), (), {}))
    assert sorted(path.name for path in study.iterdir()) == ["claims.json", "report"]


def made(target: Path, step: str, **inputs: Path) -> Path:
    """Return a result of ``step``, a model if it is a folder."""
    with new_artefact(target, Recipe(step, {}, inputs)) as partial:
        if target.suffix:
            partial.write_text(f"made by {step}")
        else:
            partial.mkdir(parents=True)
            (partial / "config.json").write_text(json.dumps([step, *sorted(inputs)]))
    return target


def test_what_was_used_is_an_artifact_offline_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Problem files and rows are made by no run: without this the chain of hashes would end in them."""
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}.items():
        monkeypatch.setenv(name, value)
    run = tmp_path / "composition" / "seed0" / "stage2-rl-level2"
    run.mkdir(parents=True)
    (run / "wandb.id").write_text("rl")
    problems = made(tmp_path / "composition" / "seed0" / "train.parquet", "create_problems")
    model = made(run / "final", "train_grpo_single", train=problems)
    log = RunLog(run, [], "rl", {})
    log.send_artifacts(used=[problems], made=[model])
    log.close()
    (offline,) = run.glob("wandb/offline-run-*")
    sent = {artifact.name: artifact for artifact in artifacts(offline)}
    used, trained = sent["composition-seed0-train.parquet"], sent["composition-seed0-stage2-rl-level2-final"]
    assert (used.use_after_commit, trained.use_after_commit) == (True, False)
    assert json.loads(trained.metadata)["inputs"] == {"train": json.loads(used.metadata)["content"]}
    assert {entry.ref for entry in used.manifest.contents} >= {problems.as_uri()}


def test_what_claims_follow_from_is_in_the_offline_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}.items():
        monkeypatch.setenv(name, value)
    runs, study = tmp_path / "checkpoints" / "composition" / "seed0", tmp_path / "results" / "composition"
    base, stage1, rl = runs / "base", runs / "stage1-rft", runs / "rl"
    starts = {base: base, stage1: stage1 / "final", rl: rl / "final"}
    for (run, model), inputs in zip(starts.items(), ({}, {"model": base}, {"model": stage1 / "final"}), strict=True):
        out = tmp_path / "progress" if run == base else run
        out.mkdir(parents=True)
        (out / "wandb.id").write_text(run.name)
        made(model, f"train {run.name}", **inputs)
        if run == rl:  # by verl, whose run ends in another process
            send_models(out, "rl", Recipe("train_grpo", {}, inputs))
            send_models(out / "final", "rl", Recipe("train_grpo", {}, inputs))  # which is no run: nothing is sent
        else:
            log = RunLog(out, [], "sft", {}, base if run == base else None)
            log.send_artifacts(used=inputs.values(), made=[model])
            log.close()
    section = study / "seed0" / "section41_42"
    rollouts = made(section / "rollouts" / "rl" / "heldout", "collect_rollouts", model=rl / "final")
    table = made(section / "results.parquet", "evaluate_accuracy", rollouts=rollouts)
    rows = pd.DataFrame({"arm": ["rl"], "n": [4], "right": [3]})
    send_result(table, "evaluate_accuracy", {}, lambda: rows, used=[rl / "final"], made=[rollouts])
    with new_artefact(study / "claims.json", Recipe("decide_claims", {}, {"table": table})) as partial:
        partial.write_text(json.dumps({"claims": [CLAIM], "controls": [], "notes": []}))
    page = made(study / "report", "report", claims=study / "claims.json")
    (page / "index.html").write_text("<p>the page</p>")
    send_report(Inputs(ReportSettings(study=study, output=page), (), {"accuracy/seed0/results.parquet": table}))

    (evaluation,) = study.glob("seed0/section41_42.wandb/wandb/offline-run-*")
    (found,) = [record.run for record in records(evaluation) if record.HasField("run")]
    assert (found.display_name, found.job_type) == ("section41_42/seed0", "evaluate_accuracy")
    sent = [artifact for run in tmp_path.rglob("offline-run-*") for artifact in artifacts(run)]
    told = {artifact.name: json.loads(artifact.metadata) for artifact in sent}
    by_content = {metadata["content"]: name for name, metadata in told.items()}
    chain = ["composition-claims.json"]
    while sources := [by_content[content] for content in told[chain[-1]]["inputs"].values()]:
        chain += sources
    assert chain == [
        "composition-claims.json",
        "composition-seed0-section41_42-results.parquet",
        "composition-seed0-section41_42-rollouts-rl-heldout",
        "composition-seed0-rl-final",
        "composition-seed0-stage1-rft-final",
        "composition-seed0-base",
    ]
    model, *_ = [artifact for artifact in sent if artifact.name == "composition-seed0-rl-final"]
    manifest = file_hash(rl / "final" / "manifest.json")
    assert (model.type, told[model.name]["manifest"], manifest[:16] in model.aliases) == ("model", manifest, True)
    places = {entry.path: entry.ref for entry in model.manifest.contents}
    assert places == {name: (rl / "final" / name).as_uri() for name in ("config.json", "manifest.json")}


def test_online_a_run_is_drawn_from_what_it_used(tmp_path: Path) -> None:
    base = made(tmp_path / "seed0" / "base", "pretrain_tiny")
    sent: list[tuple[str, str]] = []
    run = SimpleNamespace(
        offline=False,
        use_artifact=lambda artifact, aliases: sent.append(("used", artifact.name)),
        log_artifact=lambda artifact, aliases: sent.append(("made", artifact.name)),
    )
    send_artifacts(run, used=[base, tmp_path], made=[made(tmp_path / "seed0" / "sft" / "final", "sft", model=base)])
    study = tmp_path.name
    assert sent == [("used", f"{study}-seed0-base"), ("made", f"{study}-seed0-sft-final")]
