"""Records: a whole folder or none, no host and no path in it, bad files refused by name."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pandas as pd
import pytest
from numbers_in_text import read_record, unfound
from report_study import copied_to, make_study, of_seed

from compositionality.data.artefact import Recipe, file_hash, manifest_path, new_artefact, verify
from compositionality.errors import UserError
from compositionality.evaluate.claims.run import ClaimsSettings, claims_text, decide_claims
from compositionality.evaluate.results import read_results
from compositionality.evaluate.seeds import summary_of
from compositionality.evaluate.table import read, write
from compositionality.evaluate.tables import summary_markdown
from compositionality.evaluate.types import Metric
from compositionality.report.draw import FigureSettings, draw_figure
from compositionality.report.record import (
    FILES,
    RecordSettings,
    check,
    read_times,
    steps,
    without_places,
    write_record,
)
from compositionality.study import registered
from compositionality.study.model import Replicate, Request
from compositionality.study.registered import restore

STEPS = (
    {"step": 1, "timing_s/step": 2.0, "critic/score/mean": 0.1, "actor/lr": 1.0},
    {"step": 2, "timing_s/step": 3.0, "critic/score/mean": 0.4, "actor/lr": 1.0},
)


def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "stage2-rl-level2"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in STEPS))
    with new_artefact(folder / "final", Recipe("train_grpo", {})) as partial:
        partial.mkdir()
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RecordSettings:
    """A study of two seeds with everything that a record may hold, its record written. Not to be changed."""
    tmp_path = tmp_path_factory.mktemp("record")
    study = make_study(tmp_path, n_seeds=2, parts=("runs",)).study
    section, name = study / "section41_42", "section41_42/results.parquet"
    results = [f"accuracy/seed{seed}:{of_seed(study, seed)}/{name}" for seed in range(2)]
    claims = decide_claims(ClaimsSettings(results, study / "claims.json"))
    inputs = [entry.removeprefix("accuracy/") for entry in results]
    figure = draw_figure(FigureSettings(inputs, section / "accuracy_by_level"))
    (tmp_path / "times.tsv").write_text("9\tseed0\t3\tbase\t120\n9\t\t1\tpage\t5\n")
    (tmp_path / "grpo.yaml").write_text(f"model:\n  path: {tmp_path}/base\noptim: {{lr: 0.0003}}\n")
    settings = RecordSettings(
        results, tmp_path / "records" / "small", command="SEEDS=2 bash bash/quickstart.sh",
        config=[f"grpo:{tmp_path}/grpo.yaml"], runs=[f"seed0-rl:{run_folder(tmp_path)}"],
        times=f"{tmp_path}/times.tsv", notes=["alone on the machine"], figure=str(figure),
        claims=str(claims), machine=str(section / "machine.json"),
    )  # fmt: skip
    write_record(settings)
    return settings


@pytest.fixture
def copied(made: RecordSettings, tmp_path: Path) -> RecordSettings:
    """A copy of it, which a test may change."""
    return copied_to(tmp_path, made.output.parents[1], made)


def record_in(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "record.json").read_text()))


def test_a_record_holds_everything(made: RecordSettings) -> None:
    folder, record = made.output, record_in(made.output)
    assert {path.name for path in folder.iterdir()} == {*FILES, "README.md", "manifest.json"}
    assert record["config"]["grpo"] == {"model": {"path": "base"}, "optim": {"lr": 0.0003}}
    assert record["runs_by_code"] == [record["code"]]
    assert record["times_s"] == {"seed0/base": 120}
    tables = {name: Path(path) for name, _, path in (entry.partition(":") for entry in made.results)}
    inputs = {name: file_hash(path) for name, path in {**tables, "claims": Path(made.claims)}.items()}
    assert verify(folder).inputs == inputs
    assert record["claims"][0]["claim"] == "H1"
    assert "differences" not in record
    assert "torch==" in (folder / "versions").read_text()
    assert (folder / "command").read_text() == "SEEDS=2 bash bash/quickstart.sh\n"
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert rows == [{"run": "seed0-rl", **row} for row in STEPS]
    assert not [path for path in folder.iterdir() if str(made.output.parents[1]).encode() in path.read_bytes()]


def test_the_page_has_the_tables_and_what_is_missing(made: RecordSettings, tmp_path: Path) -> None:
    page = (made.output / "README.md").read_text()
    assert "Not in this folder: completions, logs." in page
    results = read_results([entry.removeprefix("accuracy/") for entry in made.results])
    tables = summary_markdown(summary_of(results)).splitlines()
    tables += claims_text(json.loads(Path(made.claims).read_text())).splitlines()
    assert set(tables) <= set(page.splitlines())
    assert not unfound(page, read_record(made.output / "record.json"))
    bare = write_record(RecordSettings(made.results, tmp_path / "bare"))
    missing = "command, metrics.jsonl, figure.png, completions, logs"
    assert f"Not in this folder: {missing}." in (bare / "README.md").read_text()
    assert "figure.png](" not in (bare / "README.md").read_text()


def test_the_tables_of_all_replicates_are_joined(made: RecordSettings) -> None:
    rows = pd.read_parquet(made.output / "results.parquet")
    replicates = rows[["evaluation", "replicate", "seed", "split"]].drop_duplicates().to_numpy().tolist()
    assert replicates == [["accuracy", "seed0", 0, 0], ["accuracy", "seed1", 1, 0]]
    right = rows.groupby(["arm", "group", "level"])["right"].mean().to_dict()
    for row in record_in(made.output)["accuracy"]:
        assert row["accuracy"] == pytest.approx(right[row["model"], row["group"], row["level"]], abs=1e-4)


def test_a_replicate_is_restored_from_what_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a fresh clone its results are as they were; what was edited since, even with its commit, is refused."""
    study = make_study(tmp_path, n_seeds=1, parts=("runs", "passk", "failures")).study
    seed = of_seed(study, 0)
    files = {kind: f"{seed}/{section}/results.parquet" for kind, section in
             (("accuracy", "section41_42"), ("passk", "section44"), ("failures", "section45")) }  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path / "clone"))
    request = Request("section41_42", "smoke", (Replicate("small", 0),))
    kept = request.record_folder(request.replicates[0])
    results = [f"{kind}/seed0:{file}" for kind, file in files.items() if Path(file).is_file()]
    samples = run_folder(tmp_path) / "samples"
    samples.mkdir()
    for step in range(0, 400, 5):
        (samples / f"validation_{step}.jsonl").write_text(f"{step:>9999}\n")
    runs = [f"seed0:{samples.parent.parent}"]
    settings = RecordSettings(results, kept, runs=runs, replicate=True, completions=True)
    with pytest.raises(UserError, match=r"^completions=true: goes with replicate=true"):
        write_record(replace(settings, replicate=False))
    answers, away = seed / "section41_42/rollouts", tmp_path / "away"
    answers.rename(away)
    with pytest.raises(UserError, match=r"rollouts: no completions there; evaluate again"):
        write_record(settings)
    shutil.copytree(away, answers)
    next(answers.rglob("*.parquet")).write_bytes(b"x")
    with pytest.raises(UserError, match=r"parquet: altered or truncated"):
        write_record(settings)
    shutil.rmtree(answers)
    away.rename(answers)
    write_record(settings)
    names = ["manifest.json", "metrics.jsonl", "results.parquet", "rollouts", "samples"]
    assert sorted(path.name for path in kept.iterdir()) == names
    assert [json.loads(line)["run"] for line in (kept / "metrics.jsonl").open()] == ["stage2-rl-level2"] * 2
    steps_kept = [int(path.read_text()) for path in (kept / "samples/stage2-rl-level2").iterdir()]
    assert {0, 395} < {*steps_kept}
    assert 100_000 < 10_000 * len(steps_kept) <= 200_000, "of many validations the first, the last and some between"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.invalid"]
    for words in (["init", "-q"], ["add", "results"], ["commit", "-q", "-m", "kept"]):
        subprocess.run([*git, *words], check=True)
    with monkeypatch.context() as patch:
        patch.setattr(registered, "copytree", Mock(side_effect=KeyboardInterrupt))  # nothing is tidied up
        with pytest.raises(KeyboardInterrupt):
            restore(request)
    assert not Path("clone/small/seed0").exists(), "all of it, or nothing"
    restore(request)
    metrics = {"accuracy": Metric.ACCURACY, "passk": Metric.PASS_AT_K, "failures": Metric.FAILURES}
    for entry in results:
        kind, _, file = entry.partition("/seed0:")
        restored = file.replace(seed.as_posix(), "clone/small/seed0")
        assert Path(restored).read_bytes() == Path(file).read_bytes()  # a record made of either is the same
        before = read_results([f"seed0:{file}"], metric=metrics[kind])
        after = read_results([f"seed0:{restored}"], metric=metrics[kind])
        pd.testing.assert_frame_equal(before.rows, after.rows)
        assert (before.replicates[0].training, before.replicates[0].inputs) == (
            after.replicates[0].training, after.replicates[0].inputs
        )  # fmt: skip
    there = Path("clone/small/seed0/section41_42/rollouts")
    assert {path.relative_to(there): path.read_bytes() for path in there.rglob("*.parquet")} == {
        path.relative_to(answers): path.read_bytes() for path in answers.rglob("*.parquet")
    }
    assert any(there.rglob("*.parquet")), "the page lets them read"
    pair = (place / "samples/stage2-rl-level2" for place in (kept, there.parent))
    before, after = ({path.name: path.read_text() for path in place.iterdir()} for place in pair)
    assert before == after
    shutil.rmtree("clone")
    (kept / "results.parquet").write_bytes((kept / "results.parquet").read_bytes() + b"x")
    with pytest.raises(UserError, match=r"seed0: changed since its commit .*results\.parquet"):
        restore(request)
    subprocess.run([*git, "commit", "-q", "-am", "edited"], check=True)
    with pytest.raises(UserError, match=r"results\.parquet: altered"):
        restore(request)


def test_a_record_is_kept_or_written_whole(copied: RecordSettings, tmp_path: Path) -> None:
    settings = copied
    before = {path: path.read_bytes() for path in settings.output.iterdir()}
    table = Path(settings.results[0].partition(":")[2])
    with new_artefact(tmp_path / "other" / table.name, Recipe("evaluate", {})) as partial:
        write(read(table).assign(tokens=0), partial)
    other = f"passk/seed0:{tmp_path / 'other' / table.name}"
    for results in (settings.results[:1], [*settings.results, other]):
        with pytest.raises(UserError, match=r"results: not the tables that the claims come from"):
            write_record(replace(settings, force=True, results=results))
    write_record(settings)  # of these very files: kept
    assert {path: path.read_bytes() for path in settings.output.iterdir()} == before
    assert [path.name for path in settings.output.parent.iterdir()] == ["small"]
    (settings.output / "record.json").write_text("{}")
    with pytest.raises(UserError, match=r"record.json: altered or truncated since it was made"):
        write_record(settings)
    with pytest.raises(UserError, match=r"small: was made from other inputs \(claims .*--force"):
        write_record(replace(settings, claims=""))
    write_record(replace(settings, force=True))
    assert {path: path.read_bytes() for path in settings.output.iterdir()} == before
    Path(settings.claims).write_text("{}")
    with pytest.raises(UserError, match=r"claims.json: altered"):
        write_record(replace(settings, force=True))


def test_without_the_models_a_record_names_the_code_of_their_tables(copied: RecordSettings) -> None:
    tables = [Path(entry.partition(":")[2]) for entry in copied.results]
    write_record(replace(copied, runs=[], force=True))
    record = json.loads((copied.output / "record.json").read_text())
    assert record["runs_by_code"] == sorted({verify(table).code for table in tables})


def test_a_registered_record_is_kept_where_claims_counted_again_decide_the_same(copied: RecordSettings) -> None:
    """Another commit may word claims otherwise; a decision that differs is named."""
    before, claims = file_hash(copied.output / "record.json"), Path(copied.claims)
    content, sealed = json.loads(claims.read_text()), verify(claims)

    def again(**changes: str) -> RecordSettings:
        content["claims"][0] |= changes
        claims.write_text(json.dumps(content))
        known = sealed.model_copy(update={"files": {claims.name: file_hash(claims)}})
        manifest_path(claims).write_text(known.model_dump_json())
        return replace(copied, registration="kept")

    registered = again(text="other words")
    assert write_record(registered) == copied.output
    check(registered)
    name, decision = content["claims"][0]["claim"], content["claims"][0]["decision"]
    for start in (check, write_record):  # a dry run refuses what a start does
        with pytest.raises(UserError, match="was made from other inputs"):
            start(replace(registered, registration=""))
    registered = again(decision="contradicted")
    for start in (check, write_record):
        with pytest.raises(UserError, match=rf"record.json: claim {name} was {decision} / .* is contradicted / "):
            start(registered)
    assert file_hash(copied.output / "record.json") == before


def test_the_machine_is_that_of_the_study(made: RecordSettings, tmp_path: Path) -> None:
    there = json.loads(Path(made.machine).read_text())
    assert record_in(made.output)["machine"] == there
    assert "| machine | A CPU, 2 cores, 8.0 GiB |" in (made.output / "README.md").read_text()
    other = tmp_path / "machine.json"
    other.write_text(json.dumps({**there, "versions": {"torch": "2.11.0"}}))
    folder = write_record(RecordSettings(made.results, tmp_path / "record", machine=str(other)))
    assert (folder / "versions").read_text() == "torch==2.11.0\n"
    other.write_text("{")
    with pytest.raises(UserError, match=r"machine\.json: damaged"):
        write_record(RecordSettings(made.results, tmp_path / "another", machine=str(other)))
    assert not (tmp_path / "another").exists()


def test_paths_lose_their_folders() -> None:
    for text, expected in (
        ("model=/data/me/checkpoints/base", "model=base"),
        ("/a/b.json", "b.json"),
        ("see https://arxiv.org/abs/2509.25123", "see https://arxiv.org/abs/2509.25123"),
        ("bash bash/quickstart.sh, data/tiny", "bash bash/quickstart.sh, data/tiny"),
        ("[x:/u/one.parquet,y:/u/v/two.parquet]", "[x:one.parquet,y:two.parquet]"),
    ):
        assert without_places({"a": [text]}) == {"a": [expected]}


def test_bad_files_are_named(tmp_path: Path) -> None:
    bad = tmp_path / "times.tsv"
    with pytest.raises(UserError, match=r"times.tsv: not lines of .*No such file"):
        read_times(bad)
    for text, told in ((b"9\tseed0\t3\trl\tsoon\n", "began, seed, depth, step, seconds .*'soon'"), (b"\xff\n", "")):
        bad.write_bytes(text)
        with pytest.raises(UserError, match=rf"times.tsv: not lines of {told}"):
            read_times(bad)
    with pytest.raises(UserError, match=r"has no metrics.jsonl"):
        list(steps({"rl": tmp_path}))
