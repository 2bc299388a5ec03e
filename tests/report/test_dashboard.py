"""What wandb is sent of results: real offline runs, read back."""

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from offline_wandb import about, artifacts, config, history, summary, tables
from report_study import MODELS, make_study

from compositionality.analysis.influence import SCHEMA, InfluenceSettings
from compositionality.analysis.influence import summary as means_of
from compositionality.analysis.predict import FIGURES
from compositionality.analysis.scaling import ScalingSettings, fit_scaling
from compositionality.data.artefact import Recipe, file_hash, new_artefact
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.evaluate.claims.run import ClaimsSettings
from compositionality.evaluate.collect import EvaluationSettings
from compositionality.evaluate.failures import FailureSettings, class_shares
from compositionality.evaluate.passk import PasskSettings, spaced_curves
from compositionality.evaluate.results import read_results
from compositionality.evaluate.seeds import summary_rows
from compositionality.evaluate.types import Metric
from compositionality.report.dashboard import JOBS, Content, send_made, send_result
from compositionality.report.send_runs import SendSettings, send_runs
from compositionality.rollout.settings import CollectSettings
from compositionality.train.boards import send_artifacts, send_models
from compositionality.train.log import RunLog

POINTS = Path(__file__).parents[2] / "results/records/tiny-scaling-2cores/flops.csv"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
CLAIM = {
    "claim": "chain", "text": "RL gives more right chains", "decision": "supported", "origin": "own",
    "comparisons": [
        {"comparison": "heldout L3: rl − stage1 > 0", "difference": 0.49, "low": 0.3, "high": 0.6, "values": [0.4, 0.5]}
    ],
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def offline() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "PROFILE": "mine"}.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one replicate, each sent as its verb sends it. Not to be changed."""
    root = tmp_path_factory.mktemp("study")
    make_study(root, parts=("passk", "failures"))
    place, problems = root / "results/tiny/seed0", [str(root / "data/tiny/seed0/string_task/test_heldout.parquet")]
    send_made(EvaluationSettings(problems=problems, output=place / "section41_42"))
    send_made(PasskSettings(problems=problems, output=place / "section44"))
    send_made(FailureSettings(problems=problems, output=place / "section45"))
    (place.parent / "claims.json").unlink(missing_ok=True)
    with new_artefact(place.parent / "claims.json", Recipe("decide_claims", {}, {})) as partial:
        partial.write_text(json.dumps({"claims": [CLAIM], "controls": [], "notes": []}))
    send_made(ClaimsSettings(output=place.parent / "claims.json"))
    return place


def only(place: Path) -> Path:
    """The run that was sent of a result."""
    (run,) = place.glob("wandb/offline-run-*")
    return run


def same(sent: pd.DataFrame, rows: Any) -> bool:
    """Whether a table holds these rows, whatever more columns it has; wandb has its figures as JSON has them."""
    expected = pd.DataFrame(rows)
    lists = expected.map(lambda cell: json.dumps(cell) if isinstance(cell, list) else cell)
    pd.testing.assert_frame_equal(sent[[*lists.columns]], lists.reset_index(drop=True), check_dtype=False, rtol=1e-12)
    return True


def test_an_evaluation_is_sent_with_counts_intervals_and_its_figure(results: Path) -> None:
    run, measured = only(results / "section41_42.wandb"), read_results([f"run:{results / 'section41_42'}"])
    found = about(run)
    assert (found.run_group, found.job_type, found.display_name) == ("tiny", "evaluate", "section41_42/seed0")
    assert {*found.tags} == {"mine", "string", "seed0", "split0", "openai", *MODELS}
    assert config(run)["facts"].items() >= {"arm": ",".join(MODELS), "seed": "0", "study": "tiny"}.items()
    table = tables(run)["accuracy"]
    assert same(table, summary_rows(measured))
    one = table[(table["model"] == "stage1") & (table["measure"] == "correct") & (table["base"] == "")]
    assert (one["n"] == one["n_problems"]).all()
    assert (one["right"] / one["n"] - one["value"]).abs().max() < 1e-12
    assert "figures/accuracy" in logged(run)


def test_pass_at_k_and_failures_are_those_of_the_report(results: Path) -> None:
    run, measured = (
        only(results / "section44.wandb"),
        read_results([f"r:{results / 'section44'}"], (), Metric.PASS_AT_K),
    )
    assert about(run).job_type == "passk"
    assert same(tables(run)["passk"], spaced_curves(measured, [("rl-level2", "stage1")]))
    assert "figures/passk" in logged(run)
    run = only(results / "section45.wandb")
    measured = read_results([f"run:{results / 'section45'}"], metric=Metric.FAILURES)
    assert about(run).job_type == "failures"
    assert same(tables(run)["failure_modes"], class_shares(measured))
    assert "figures/failure_modes" in logged(run)


def test_claims_are_sent_with_decisions_and_estimates(results: Path) -> None:
    run = only(results.parent / "claims.json.wandb")
    assert (about(run).job_type, about(run).run_group, about(run).display_name) == ("claims", "tiny", "claims/tiny")
    (row,) = tables(run)["claims"].to_dict("records")
    assert (row["claim"], row["claim_decision"], row["difference"]) == ("chain", "supported", 0.49)
    found, name = summary(run), "estimates/heldout L3: rl − stage1 > 0"
    assert found["claims/chain"] == "supported"
    assert [found[name + end] for end in ("", "/low", "/high")] == [0.49, 0.3, 0.6]


def test_rollouts_are_sent_with_completions_to_read(results: Path, tmp_path: Path) -> None:
    place = tmp_path / "results/tiny/seed0/rollouts"
    shutil.copytree(results / "section41_42/rollouts/stage1/test_heldout", place)
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["facts"] = {"levels": [{"group": "heldout", "level": 1, "n": 8, "correct": 3}], "reasons": {"correct": 3}}
    (place / "manifest.json").write_text(json.dumps(manifest))
    send_made(CollectSettings(problems=Path("p"), output=place, model="m"))
    run = only(tmp_path / "results/tiny/seed0/rollouts.wandb")
    assert about(run).job_type == "rollouts"
    assert tables(run)["rollouts"].to_dict("records") == [{"group": "heldout", "level": 1, "n": 8, "right": 3}]
    assert tables(run)["completions"]["response"].str.contains("stage1, seed 0, says").all()


def test_influence_is_sent_with_its_means_queries_and_figures(tmp_path: Path) -> None:
    place = tmp_path / "results/tiny/seed0/influence/sft-plain"
    line = {
        "level": 1,
        "group": "trained",
        "samples": 2,
        "update_norm": 0.5,
        "influence_on_others": 0.1,
        "entropy": 0.2,
    }
    queries = [{"problem": right, "correct": right, "influence": 0.1 * right, **line} for right in range(3)]
    pairs = {"labels": ["trained L1", "heldout L2"], "means": [[1.0, 0.5], [0.25, 2.0]]}
    with new_artefact(place / "influence.parquet", Recipe("influence", {}, {}), {"co_influence": pairs}) as partial:
        write_table(pa.Table.from_pylist(queries, SCHEMA), partial)
    send_made(InfluenceSettings("m", Path("r"), Path("p"), place))
    run = only(place.with_name("sft-plain.wandb"))
    found = about(run)
    assert (found.run_group, found.job_type, found.display_name) == ("tiny", "influence", "influence-sft-plain/seed0")
    assert {*found.tags} == {"mine", "sft-plain", "seed0", "split0"}
    means = means_of(queries)
    assert same(tables(run)["influence"], means["by_accuracy"])
    assert same(tables(run)["queries"], queries)
    assert tables(run)["influence_pairs"].to_numpy().tolist()[1] == ["trained L1", "heldout L2", 0.5]
    assert {"figures/influence", "figures/influence_pairs"} <= logged(run)
    told = summary(run)
    assert (told["influence/queries"], told["influence/mixed"]) == (3, means["mixed"])


def test_scaling_laws_are_sent_with_their_predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their verb, and afterwards; a fit of a study's runs is of that study, and was made from their models."""
    monkeypatch.setattr("compositionality.analysis.laws.STARTS", 3)
    monkeypatch.setattr("compositionality.analysis.predict.FIGURES", {"end-gap": FIGURES["end-gap"]})
    fit_scaling(ScalingSettings([str(POINTS)], tmp_path / "fit", laws=["log_linear"], draws=20))
    training = tmp_path / "checkpoints/s/seed3/small"
    training.mkdir(parents=True)
    recipe = {"step": "train_grpo_single", "settings": {}, "inputs": {}}
    for name, text in {"recipe.json": json.dumps(recipe), "wandb.id": "abc", "metrics.jsonl": '{"step": 1}\n'}.items():
        (training / name).write_text(text)
    made(training / "final", "train small")
    place = tmp_path / "results/s/scaling_law/flops"
    read = Recipe("fit_scaling", {}, {"points": training / "metrics.jsonl"})
    with new_artefact(place / "scaling.json", read) as partial:
        shutil.copyfile(tmp_path / "fit/scaling.json", partial)
    content = json.loads((place / "scaling.json").read_text())
    by_verb, afterwards = ScalingSettings([f"small:{training}"], place), [str(tmp_path / "results"), str(training)]
    for send in (lambda: send_made(by_verb), lambda: send_runs(SendSettings(afterwards))):
        shutil.rmtree(place.with_name("flops.wandb"), ignore_errors=True)
        send()
        run = only(place.with_name("flops.wandb"))
        found = about(run)
        assert (found.run_group, found.job_type, "seed3" in found.tags) == ("s", "scaling", True)
        assert [one.name for one in artifacts(run) if one.use_after_commit] == ["s-seed3-small-final"]
        (law,) = content["laws"]
        assert same(tables(run)["parameters"], [{"law": law["law"], **row} for row in law["parameters"]])
        assert {"laws", "predictions", "quantities", "scaling"} <= {*tables(run)}
        assert "figures/scaling" in logged(run)
        (gap,) = content["quantities"]
        assert summary(run)["quantities/end-gap"] == gap["value"]


def test_results_are_sent_afterwards_as_their_own(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a folder that holds several, each with what it was made from; rollouts of an evaluation are part of that."""
    root = results.parents[2]
    for place in (results / "section41_42", results / "models", root / "data"):
        shutil.copytree(place, tmp_path / place.relative_to(root))
    for name, value in {"PROFILE": "paper", "SEED": "9"}.items():
        monkeypatch.setenv(name, value)
    send_runs(SendSettings([str(tmp_path / "results"), str(tmp_path / "data")]))
    (run,) = tmp_path.rglob("offline-run-*")
    assert about(run).display_name == "section41_42/seed0"
    facts = config(run)["facts"]
    assert (facts["seed"], facts.get("profile"), config(run)["sampling"]["n_samples"]) == ("0", None, 1)
    used = {artifact.name for artifact in artifacts(run) if artifact.use_after_commit}
    assert used >= {
        "tiny-seed0-string_task-test_heldout.parquet",
        "tiny-seed0-section41_42-rollouts-stage1-test_heldout",
    }


def test_a_training_that_is_sent_afterwards_was_made_from_a_file_of_a_folder(tmp_path: Path) -> None:
    """Its recipe has the hash of the one file; the manifest is that of the folder."""
    rows = made(tmp_path / "data/s/seed0/rft/data", "filter_rollouts")
    training = tmp_path / "checkpoints/s/seed0/stage1-rft"
    training.mkdir(parents=True)
    recipe = {"step": "train_sft", "settings": {}, "inputs": {"train": file_hash(rows / "config.json")}}
    for name, text in {"recipe.json": json.dumps(recipe), "wandb.id": "abc", "metrics.jsonl": '{"step": 1}\n'}.items():
        (training / name).write_text(text)
    send_runs(SendSettings([str(tmp_path)]))
    (used,) = artifacts(only(training))
    assert (used.name, used.use_after_commit) == ("s-seed0-rft-data-config.json", True)
    made(tmp_path / "data/s/seed1/rft/data", "filter_rollouts")  # has an equal file: either may have been read
    shutil.rmtree(training / "wandb")
    send_runs(SendSettings([str(tmp_path)]))
    assert not artifacts(only(training))


@pytest.mark.full
def test_results_and_trainings_are_written_for_tensorboard(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice: a run that is there is replaced. Curves, completions, settings, tables and figures as in wandb."""
    monkeypatch.setenv("WANDB_NAME", "one name for all")
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

    training = tmp_path / "tiny/seed0/stage2-rl-level2"
    (training / "samples").mkdir(parents=True)
    for name, text in {
        "recipe.json": json.dumps({"step": "train_grpo_single", "settings": {"rollout.n": 4}, "inputs": {}}),
        "wandb.id": "abc",
        "metrics.jsonl": "".join(json.dumps({"step": step, "critic/score/mean": step / 4}) + "\n" for step in (1, 2)),
        "samples/generations.jsonl": json.dumps({"step": 2, "completion": "f(x)=1"}) + "\n",
    }.items():
        (training / name).write_text(text)
    boards = tmp_path / "boards"
    for _ in range(2):
        send_runs(SendSettings([str(training), str(results / "section41_42")], boards))
    found = EventAccumulator(str(boards / "tiny/rl-level2/seed0")).Reload()
    assert [event.step for event in found.Tensors("critic/score/mean")] == [1, 2]
    assert b"f(x)=1" in found.Tensors("val/generations/text_summary")[0].tensor_proto.string_val[0]
    found = EventAccumulator(str(boards / "tiny/section41_42/seed0")).Reload()
    width, height, png = found.Tensors("figures/accuracy")[0].tensor_proto.string_val[:3]
    assert (int(width) > 400, int(height) > 300, png[1:4]) == (True, True, b"PNG")
    lines = found.Tensors("tables/accuracy/text_summary")[0].tensor_proto.string_val[0].decode().splitlines()
    rows = summary_rows(read_results([f"run:{results / 'section41_42'}"]))
    assert len(lines) == 2 + len(pd.DataFrame(rows))


def test_p18_damaged_recipes_and_altered_results_are_refused_before_anything_is_sent(study: Path) -> None:
    """Both ended with a traceback, after a part was written."""
    boards, run = study.parent / "boards", study / "rl"
    run.mkdir()
    for name, text in {"recipe.json": '{"settings": {}}', "wandb.id": "abc", "metrics.jsonl": '{"step": 1}\n'}.items():
        (run / name).write_text(text)
    with pytest.raises(UserError, match=r"recipe\.json: has no key 'step'; train it again"):
        send_runs(SendSettings([str(study)], boards))
    shutil.rmtree(run)
    (study / "report" / "index.html").write_text("<p>another")
    with pytest.raises(UserError, match=r"index\.html: altered or truncated"):
        send_runs(SendSettings([str(study)], boards))
    assert not boards.exists()


def logged(run: Path) -> set[str]:
    """The names of what a run logged."""
    return {name.partition(".")[0] for row in history(run) for name in row}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study called composition, with a report of one table and one figure."""
    study = tmp_path / "composition"
    study.mkdir()
    with new_artefact(study / "report", Recipe("report", {}, {})) as partial:
        (partial / "tables").mkdir(parents=True)
        (partial / "figures").mkdir()
        (partial / "index.html").write_text("<p>the page</p>")
        (partial / "tables" / "accuracy.csv").write_text("model,accuracy\nstage1,0.03\nrl-level2,\n")
        (partial / "figures" / "accuracy.png").write_bytes(base64.b64decode(PIXEL))
    return study


def test_page_figures_and_tables_are_sent_where_wandb_can_be_used(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        for name in ("WANDB_MODE", "WANDB_API_KEY"):
            without.delenv(name, raising=False)
        assert not send_result(study / "report", {}, [])
    assert [path.name for path in study.iterdir()] == ["report"]
    assert send_result(study / "report", {}, [])
    run = only(study / "report.wandb")
    found = about(run)
    assert (found.run_group, found.job_type, found.display_name) == ("composition", "report", "report/composition")
    assert {"page", "figures/accuracy", "tables/accuracy"} <= logged(run)
    assert tables(run)["accuracy"].astype(object).where(lambda cells: cells.notna(), None).to_numpy().tolist() == [
        ["stage1", 0.03],
        ["rl-level2", None],
    ]


def made(target: Path, step: str, **inputs: Path) -> Path:
    """Return a result of ``step``, a model if it is a folder."""
    with new_artefact(target, Recipe(step, {}, inputs)) as partial:
        if target.suffix:
            partial.write_text(f"made by {step}")
        else:
            partial.mkdir(parents=True)
            (partial / "config.json").write_text(json.dumps([step, *sorted(inputs)]))
    return target


def test_what_claims_follow_from_is_in_the_offline_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Problem files are made by no run: what was used is an artifact too, or the chain of hashes would end in them."""
    runs, study = tmp_path / "checkpoints" / "composition" / "seed0", tmp_path / "results" / "composition"
    base, stage1, rl = runs / "base", runs / "stage1-rft", runs / "rl"
    problems = made(tmp_path / "data" / "composition" / "seed0" / "train.parquet", "create_problems")
    starts = {base: base, stage1: stage1 / "final", rl: rl / "final"}
    before = ({}, {"model": base}, {"files": problems, "model": stage1 / "final"})
    for (run, model), inputs in zip(starts.items(), before, strict=True):
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
    monkeypatch.setitem(JOBS, "evaluate_accuracy", ("evaluate", lambda *_: Content({"counts": [{"n": 4, "right": 3}]})))
    assert send_result(table, {}, used=[rl / "final"])
    with new_artefact(study / "claims.json", Recipe("decide_claims", {}, {"table": table})) as partial:
        partial.write_text(json.dumps({"claims": [CLAIM], "controls": [], "notes": []}))
    assert send_result(study / "claims.json", {}, used=[table])

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
        "composition-seed0-train.parquet",
        "composition-seed0-stage1-rft-final",
        "composition-seed0-base",
    ]
    (used,) = [artifact for artifact in sent if artifact.name == "composition-seed0-train.parquet"]
    assert used.use_after_commit
    assert {entry.ref for entry in used.manifest.contents} >= {problems.as_uri()}
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
