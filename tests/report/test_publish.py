"""What is published: real small artefacts, cards parsed back by huggingface_hub, rows read by datasets.

There is no network: of the upload only the calls of huggingface_hub are seen, by a stand-in for HfApi.
"""

import base64
import gzip
import json
import os
import re
import shutil
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from assets import save, string_task, tiny_model
from huggingface_hub import DatasetCard, HfApi, ModelCard, parse_eval_result_entries
from huggingface_hub.utils import filter_repo_objects

from compositionality.data.artefact import Manifest, Recipe, new_artefact, read_manifest, verify
from compositionality.data.create_problems import create_problems, settings_for
from compositionality.errors import UserError
from compositionality.evaluate.collect import EvaluationSettings, evaluate
from compositionality.evaluate.results import read_results
from compositionality.evaluate.seeds import summary_of
from compositionality.report.page.inputs import ReportSettings
from compositionality.report.publish import PublishSettings, check, check_public, publish
from compositionality.report.record import RecordSettings, write_record
from compositionality.rft.solutions import SolutionSettings, write_solutions
from compositionality.rollout.collect import collect
from compositionality.rollout.settings import CollectSettings

OPTIONS: dict[str, Any] = {"levels": (1, 2), "style": "compact", "ids": (16, 17, 22), "input_length": (3, 4)}
TOKEN = "hf_" + 30 * "a"
ROOT = Path(__file__).parents[2]


def model(folder: Path, recipe: Recipe, seed: int) -> Path:
    """A model folder with random weights, made from what the recipe says."""
    with new_artefact(folder, recipe, {"parameters": 1}) as partial:
        save(partial, *tiny_model([function.name for function in string_task().functions], seed))
        (partial / "optimizer.pt").write_bytes(b"moments")
        (partial / "steps").mkdir()
        (partial / "steps/model.safetensors").write_bytes(b"a checkpoint")
    return folder


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Problems, gold solutions, a base, a model made from both, answers, an evaluation. Not to be changed."""
    root = tmp_path_factory.mktemp("small")
    for split in ("train", "test"):
        create_problems(settings_for("string", output=str(root / f"{split}.parquet"), split=split, count=8, **OPTIONS))
    write_solutions(SolutionSettings(str(root / "train.parquet"), str(root / "sft")))
    base = model(root / "base", Recipe("pretrain_tiny", {"seed": 1}), 1)
    made_from = {"model": base, "train_files/train.parquet": root / "sft/train.parquet"}
    trained = model(root / "run/final", Recipe("sft", {"optim.lr": 0.001}, made_from), 2)
    collect(CollectSettings(problems=root / "test.parquet", output=root / "rollouts", model=str(base), max_tokens=8))
    models = [f"base:{base}", f"sft:{trained}"]
    evaluate(
        EvaluationSettings(
            models=models, problems=[f"tests:{root}/test.parquet"], output=root / "results/s", max_tokens=8
        )
    )
    return root


def of_model(study: Path, tmp_path: Path, **changes: Any) -> PublishSettings:
    settings = PublishSettings(
        what=[str(study / "run/final")], output=tmp_path / "out", licence="apache-2.0", repo="me/model",
        sources=[str(study / "base"), f"me/data:{study}/sft", f"me/tests:{study}/test.parquet"],
        results=[f"seed0:{study}/results/s/results.parquet"], command="bash bash/study.sh", limits=["Tests only."],
    )  # fmt: skip
    return replace(settings, **changes)


def of_rows(study: Path, tmp_path: Path, **changes: Any) -> PublishSettings:
    what = [*(f"{study}/{name}" for name in ("train.parquet", "test.parquet", "sft", "rollouts")), f"gold:{study}/sft"]
    sources = [f"{study}/{name}" for name in ("train.parquet", "test.parquet", "base")]
    return replace(PublishSettings(what, tmp_path / "out", "cc-by-4.0", sources=sources), **changes)


def test_a_model_has_a_card_with_base_data_recipe_and_its_own_accuracy(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, shown = publish(of_model(study, tmp_path)), capsys.readouterr().out
    card = ModelCard.load(folder / "README.md")
    assert card.data.license == "apache-2.0"
    assert card.data.library_name == "transformers"
    assert card.data.datasets == ["me/data"]
    assert card.data.base_model is None
    for text in ("bash bash/study.sh", "optim.lr: 0.001", "Tests only.", "me/data", "write_solutions", "from scratch"):
        assert text in card.text
    rows = [
        row for row in summary_of(read_results(of_model(study, tmp_path).results))["accuracy"] if row["model"] == "sft"
    ]
    assert [result.metric_value for result in card.data.eval_results] == [round(row["accuracy"], 4) for row in rows]
    entries = parse_eval_result_entries(yaml.safe_load((folder / ".eval_results/tests.yaml").read_text()))
    assert [(entry.dataset_id, entry.task_id, entry.value) for entry in entries] == [
        ("me/tests", f"tests-{row['group']}-level{row['level']}", round(row["accuracy"], 4)) for row in rows
    ]
    assert all(
        f"[{row['low']:.4f}, {row['high']:.4f}]" in entry.notes for row, entry in zip(rows, entries, strict=True)
    )
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {name for name in files if "/" not in name} == {
        *("README.md", "manifest.json", "model.safetensors", "config.json", "generation_config.json"),
        *("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"),
    }
    assert (folder / "model.safetensors").read_bytes() == (study / "run/final/model.safetensors").read_bytes()
    assert read_manifest(study / "base") in [read_manifest_at(path) for path in folder.glob("manifests/*")]
    for name in ("optimizer.pt", "steps/model.safetensors"):
        assert f"left out: {study}/run/final/{name}" in shown
    assert "nothing was sent" in shown


def read_manifest_at(path: Path) -> Manifest:
    return Manifest.model_validate_json(path.read_bytes())


def test_a_base_of_the_hub_is_referenced_with_its_licence(study: Path, tmp_path: Path) -> None:
    base = save(tmp_path / "hub", *tiny_model(["func_1"]))
    trained = model(tmp_path / "rl", Recipe("train_grpo", {}, {"model": base}), 3)
    settings = PublishSettings([str(trained)], tmp_path / "out", "llama3.1", sources=[f"meta/Base-1B:{base}"])
    card = ModelCard.load(publish(settings) / "README.md")
    assert card.data.base_model == ["meta/Base-1B"]
    assert "meta/Base-1B, has a licence of its own" in card.text
    assert "from scratch" not in card.text
    assert "No evaluation is given." in card.text


def test_p15_the_accuracy_is_that_of_the_weights_and_not_of_a_name(study: Path, tmp_path: Path) -> None:
    made_from = {"model": study / "base"}
    other = model(tmp_path / "sft/final", Recipe("sft", {"optim.lr": 0.1}, made_from), 4)
    with pytest.raises(UserError, match=r"results: none has answers of .*/sft/final beside it"):
        publish(of_model(study, tmp_path, what=[str(other)], sources=[str(study / "base")]))
    assert not (tmp_path / "out").exists()


def test_datasets_reads_problems_sft_rows_and_rollouts_of_one_folder(study: Path, tmp_path: Path) -> None:
    """They failed in one tree: each kind has other columns."""
    datasets = pytest.importorskip("datasets")
    folder = publish(of_rows(study, tmp_path))
    places = {
        ("problems", "train"): "train.parquet", ("problems", "test"): "test.parquet",
        ("sft", "train"): "sft/train.parquet", ("gold", "train"): "sft/train.parquet",
        ("rollouts", "train"): "rollouts/shard-00000.parquet",
    }  # fmt: skip
    for (config, split), file in places.items():
        rows = datasets.load_dataset(str(folder), config, split=split, cache_dir=str(tmp_path / "cache"))
        assert rows.to_list() == pq.read_table(study / file).to_pylist()
    assert [*datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))] == ["train", "test"], "problems"
    card = DatasetCard.load(folder / "README.md")
    named = [(one["config_name"], [split["split"] for split in one["data_files"]]) for one in card.data.configs]
    assert named == [("problems", ["train", "test"]), ("sft", ["train"]), ("rollouts", ["train"]), ("gold", ["train"])]
    assert card.data.license == "cc-by-4.0"
    assert "| problems | test | 8 | 1, 2 |" in card.text
    assert "input_length:" in card.text


def test_datasets_reads_the_completions_of_a_record_a_model_a_configuration(study: Path, tmp_path: Path) -> None:
    """Together nothing would say which model wrote a row."""
    datasets = pytest.importorskip("datasets")
    results = [f"accuracy/seed0:{study}/results/s/results.parquet"]
    record = write_record(RecordSettings(results, tmp_path / "record", replicate=True, completions=True))
    for name in ("", "mine:"):
        folder = publish(PublishSettings([f"{name}{record}"], tmp_path / f"out{len(name)}", "cc-by-4.0"))
        for model in ("base", "sft"):
            config = f"{name[:-1] or 'rollouts'}-{model}"
            rows = datasets.load_dataset(str(folder), config, split="tests", cache_dir=str(tmp_path / "cache"))
            shards = sorted((record / "rollouts" / model / "tests").glob("*.parquet"))
            assert rows.to_list() == pa.concat_tables(map(pq.read_table, shards)).to_pylist()


def test_the_card_of_a_study_has_its_figure_and_its_primary_claims(tmp_path: Path) -> None:
    record = ROOT / "results/records/composition-5/study"
    card = DatasetCard.load(publish(PublishSettings([str(record)], tmp_path / "out", "cc-by-4.0")) / "README.md").text
    figure = re.search(r"!\[[^]]+\]\((\S+)\)", card)
    assert figure
    assert (tmp_path / "out" / figure[1]).read_bytes() == (record / "figure.png").read_bytes()
    rows = [line.strip("| ").split(" | ") for line in card.splitlines() if line.startswith("|")]
    measured = {row[0]: row[1:] for row in rows}
    for claim in json.loads((record / "record.json").read_text())["claims"]:
        assert (claim["text"] in measured) == claim["primary"]
        if claim["primary"]:
            figures, decision = measured[claim["text"]]
            assert decision.startswith(claim["decision_holm"])
            for row in claim["comparisons"]:
                value, low, high = (f"{100 * row[key]:.1f}" for key in ("difference", "low", "high"))
                assert re.search(rf"{value}\D* \[\+?{low}, \+?{high}\] against ", figures)


def test_a_record_keeps_its_names(study: Path, tmp_path: Path) -> None:
    results = f"accuracy/seed0:{study}/results/s/results.parquet"
    record = write_record(RecordSettings([results], tmp_path / "record", command="bash bash/study.sh"))
    folder = publish(PublishSettings([str(record)], tmp_path / "out", "cc-by-4.0"))
    for name in ("record.json", "README.md", "results.parquet", "command"):
        assert (folder / "record" / name).read_bytes() == (record / name).read_bytes()
    assert DatasetCard.load(folder / "README.md").data.configs[0]["config_name"] == "results"


def test_a_page_is_published_with_figures_and_tables(settings: ReportSettings, tmp_path: Path) -> None:
    folder = publish(PublishSettings([f"page:{settings.output}"], tmp_path / "out", "cc-by-4.0"))
    assert verify(settings.output).files.keys() == {
        path.relative_to(folder / "page").as_posix() for path in (folder / "page").rglob("*") if path.is_file()
    }
    card = DatasetCard.load(folder / "README.md").text
    assert (settings.output / "finding.txt").read_text().splitlines()[0] in card
    assert "](page/figures/headline.png)" in card


def test_p18_what_is_not_ours_or_not_named_is_refused(study: Path, tmp_path: Path) -> None:
    template = model(tmp_path / "template", Recipe("set_chat_template", {}, {"model": study / "base"}), 5)
    bare = save(tmp_path / "bare", *tiny_model(["func_1"]))
    foreign = shutil.copy(study / "train.parquet", tmp_path / "foreign.parquet")
    write_solutions(SolutionSettings(str(foreign), str(tmp_path / "copied")))
    with new_artefact(tmp_path / "theirs", Recipe("prepare_guru", {})) as partial:
        shutil.copytree(study / "sft", partial)
    with new_artefact(tmp_path / "guru", Recipe("filter_problems", {}, {"problems": tmp_path / "theirs"})) as partial:
        shutil.copytree(study / "sft", partial)
    edited = shutil.copytree(study / "base", tmp_path / "edited")
    (edited / "config.json").write_text("{}")
    base, final, file = (str(study / name) for name in ("base", "run/final", "train.parquet"))
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"what": []}, "what: give at least one"),
        ({"what": [str(study / "nothing")]}, "nothing: no such file or folder"),
        ({"what": [str(bare)]}, "bare: has no manifest, so it is not a result of ours"),
        ({"what": [str(study / "run")]}, "of a run give its final/ or best/"),
        ({"what": [str(template)]}, "made by set_chat_template, which is not published"),
        ({"what": [str(edited)]}, r"config.json: altered or truncated"),
        ({"what": [final, base]}, "a model is published alone"),
        ({"what": [final]}, r"sft: its input model \(sha256 \w{16}\) is not named"),
        ({"what": [str(study / "sft")]}, r"write_solutions: its input problems .* is not named"),
        ({"what": [str(tmp_path / "copied")], "sources": [f"me/x:{foreign}"]}, "foreign.parquet, is not a result"),
        ({"what": [str(tmp_path / "guru")], "sources": [str(tmp_path / "theirs")]}, "theirs, is not a result of ours"),
        ({"what": [f"..:{file}"]}, r"what: name '\.\.'"),
        ({"what": [base], "sources": [str(study / "sft")]}, "sft: nothing was made from it or tested on it"),
        ({"what": [file], "results": ["r"]}, "results: go with a model"),
        ({"what": [f"a:{file}", f"a:{study}/sft"], "sources": [file]}, "other columns"),
        ({"what": [file, file]}, "problems has a split train already"),
        ({"what": [base], "repo": "model"}, "repo=model: give OWNER/NAME"),
        ({"what": [base], "sources": ["nobody/nothing"]}, "nobody/nothing: no such folder"),
    ]  # fmt: skip
    for changes, message in refusals:
        with pytest.raises(UserError, match=message):
            publish(replace(PublishSettings([], tmp_path / "out", "apache-2.0"), **changes))
        assert not (tmp_path / "out").exists()


def test_a_dry_run_refuses_what_is_there_and_waits_for_the_rest(study: Path, tmp_path: Path) -> None:
    check(of_rows(study, tmp_path, what=[str(tmp_path / "later.parquet")]))
    check(of_rows(study, tmp_path))
    with pytest.raises(UserError, match="has no manifest"):
        check(of_rows(study, tmp_path, what=[str(study / "run")]))
    assert [*tmp_path.iterdir()] == []


def test_an_output_is_made_once_and_another_is_refused(study: Path, tmp_path: Path) -> None:
    settings = of_rows(study, tmp_path)
    before = publish(settings).stat().st_mtime_ns
    assert publish(settings).stat().st_mtime_ns == before
    with pytest.raises(UserError, match="pass --force"):
        publish(replace(settings, licence="mit"))
    with pytest.raises(UserError, match=r"is inside the input|contains the input"):
        publish(replace(settings, output=study / "sft/out"))


def test_p14_a_secret_is_refused_and_not_shown(study: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"README.md: holds what looks like a key or a password") as error:
        publish(of_rows(study, tmp_path, command=f"X={TOKEN} bash bash/study.sh"))
    assert TOKEN not in str(error.value)
    assert [path.name for path in tmp_path.iterdir() if "lock" not in path.name] == []
    kinds = ("sk-" + 24 * "b", "AK" + "IA" + 16 * "C", "WANDB_API_KEY=" + 40 * "d", "-----BEGIN " + "PRIVATE KEY-----")
    for secret in kinds:
        (tmp_path / "notes.txt").write_text(f"X={secret} bash bash/study.sh")
        with pytest.raises(UserError, match=r"notes.txt: holds what looks like a key or a password"):
            check_public(tmp_path, [])


def test_paths_of_the_machine_are_refused(study: Path, tmp_path: Path) -> None:
    for place in (tmp_path, Path.home() / "x", Path("/") / "home" / "someone", Path("/") / "lustre" / "x"):
        with pytest.raises(UserError, match=r"README.md: holds the path .* of a machine"):
            publish(of_rows(study, tmp_path, limits=[f"It was made in {place}."]))
    publish(of_rows(study, tmp_path, limits=["Not on https://example.test/home/page; see bash/home/x."]))


def test_secrets_are_found_in_rows_weights_and_packed_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the value of a secret variable of whoever publishes, whatever its form."""
    monkeypatch.setenv("OTHER_API_KEY", "correct horse")
    packed = base64.b64encode(gzip.compress(f'{{"response": "{TOKEN}"}}'.encode())).decode()
    header = json.dumps({"__metadata__": {"key": TOKEN}}).encode()
    for name in ("rows.parquet", "model.safetensors", "index.html", "notes.csv"):
        folder = tmp_path / name.replace(".", "_")
        folder.mkdir()
        pq.write_table(pa.table({"response": [["a", TOKEN]]}), folder / name)
        texts = {"index.html": f"<script>{packed}</script>".encode(), "notes.csv": b"a,correct horse"}
        texts["model.safetensors"] = len(header).to_bytes(8, "little") + header
        if name in texts:
            (folder / name).write_bytes(texts[name])
        with pytest.raises(UserError, match=name):
            check_public(folder, [])


@pytest.mark.parametrize("before", ["\n", "\t", "\r\n", "a\n\n"])
@pytest.mark.parametrize("what", [TOKEN, str(Path("/") / "home" / "someone")])
def test_what_begins_a_line_of_a_text_in_json_is_found(tmp_path: Path, before: str, what: str) -> None:
    """JSON writes the line's end as a letter, in a packed text twice."""
    said = json.dumps({"response": before + what})
    for name, text in (("rows.parquet", ""), ("notes.json", said), ("page.html", json.dumps(said))):
        folder = tmp_path / name
        folder.mkdir()
        if text:
            (folder / name).write_text(text)
        else:
            pq.write_table(pa.table({"response": [before + what]}), folder / name)
        with pytest.raises(UserError, match=name):
            check_public(folder, [])


class Hub:
    """Stands in for HfApi; takes the words that it takes."""

    calls: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012
    error: Exception | None = None

    def create_repo(self, repo_id: str, **words: Any) -> None:
        signature(HfApi.create_repo).bind(self, repo_id, **words)
        self.calls.append((repo_id, words))

    def upload_folder(self, **words: Any) -> None:
        signature(HfApi.upload_folder).bind(self, **words)
        if self.error:
            raise self.error
        self.calls.append(("upload", words))


def test_only_upload_sends_and_needs_a_token(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The calls only: there is no Hub here."""
    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: os.environ.get("HF_TOKEN"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    publish(of_model(study, tmp_path))
    assert Hub.calls == []
    sending = of_model(study, tmp_path, upload=True)
    with pytest.raises(UserError, match="set HF_TOKEN"):
        publish(sending)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    (tmp_path / "out/notes.txt").write_text("put there by hand")
    publish(sending)
    made, upload = Hub.calls
    assert made == ("me/model", {"repo_type": "model", "private": True, "exist_ok": True})
    words = {"repo_id": "me/model", "folder_path": tmp_path / "out", "repo_type": "model"}
    assert upload == ("upload", {**words, "allow_patterns": ANY})
    here = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert set(filter_repo_objects(sorted(here), allow_patterns=upload[1]["allow_patterns"])) == here - {"notes.txt"}
    monkeypatch.setattr(Hub, "error", OSError(f"403 Forbidden for {TOKEN}"))
    with pytest.raises(UserError, match=r"me/model: the Hub did not take it \(403 Forbidden for \*\*\*\)"):
        publish(sending)
    assert TOKEN not in capsys.readouterr().out
    (tmp_path / "out/README.md").write_text("edited")
    with pytest.raises(UserError, match=r"README.md: altered"):
        publish(sending)
