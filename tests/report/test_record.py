"""Records: everything in one file, no host and no path in it, bad files refused by name."""

import json
import platform
from pathlib import Path
from typing import Any

import pytest
from test_figures import summary_file

from compositionality.data.artefact import Recipe, file_hash, new_artefact
from compositionality.errors import UserError
from compositionality.report.record import (
    RecordSettings,
    read_config,
    read_times,
    run_figures,
    without_places,
    write_record,
)
from compositionality.study.machine import machine

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


def test_a_record_holds_everything(tmp_path: Path) -> None:
    seeds = summary_file(tmp_path / "seeds.json")
    (tmp_path / "times.tsv").write_text("pretrain\t120.5\nrl 30\nrl 12.25\n")
    (tmp_path / "grpo.yaml").write_text(f"model:\n  path: {tmp_path}/base\noptim: {{lr: 0.0003}}\n")
    made = RecordSettings(
        seeds, tmp_path / "records/tiny.json", "bash bash/quickstart.sh", [f"grpo:{tmp_path}/grpo.yaml"],
        [str(run_folder(tmp_path))], [f"seed0:{tmp_path}/times.tsv"], ["alone on the machine"],
    )  # fmt: skip
    record = json.loads(write_record(made).read_text())
    assert record["config"]["grpo"] == {"model": {"path": "base"}, "optim": {"lr": 0.0003}}
    assert record["runs_by_code"] == [record["code"]]
    assert record["times_s"] == {"seed0": {"pretrain": 120.5, "rl": 42.25}}
    assert record["runs"]["stage2-rl-level2"] == {
        "steps": 2, "timing_s/step mean": 2.5, "critic/score/mean first, last": [0.1, 0.4],
    }  # fmt: skip
    assert record["summary_sha256"] == file_hash(seeds)
    assert len(record["accuracy"]) == 2 * 6 * 4
    assert "differences" not in record
    assert {"torch", "transformers"} <= set(record["versions"])
    assert record["machine"]["python"] == platform.python_version()
    assert str(tmp_path) not in json.dumps(record)
    assert write_record(made) == made.output  # of these very files: kept
    made.output.write_text(json.dumps({**record, "summary_sha256": "another"}))
    with pytest.raises(UserError, match="there already, of another run"):
        write_record(made)
    made.force = True
    assert json.loads(write_record(made).read_text()) == record


def test_a_record_holds_the_verdicts_where_they_are_named(tmp_path: Path) -> None:
    made = RecordSettings(summary_file(tmp_path / "seeds.json"), tmp_path / "record.json")
    assert "verdict" not in write_record(made).read_text()
    content = {"claims": [{"claim": "H1", "decision": "supported"}], "controls": [], "notes": ["one seed"], "seeds": []}
    with new_artefact(tmp_path / "claims.json", Recipe("hold_claims", {})) as partial:
        partial.write_text(json.dumps(content))
    made.claims, made.force = str(tmp_path / "claims.json"), True
    record = json.loads(write_record(made).read_text())
    assert (record["claims"], record["notes"]) == (content["claims"], [])
    assert record["claims_notes"] == ["one seed"]
    (tmp_path / "claims.json").write_text("{}")
    with pytest.raises(UserError, match=r"claims.json: altered"):
        write_record(made)


def test_a_study_of_another_machine_keeps_that_machine(tmp_path: Path) -> None:
    seeds, there = summary_file(tmp_path / "seeds.json"), tmp_path / "machine.json"
    there.write_text(json.dumps({"gpus": ["a GPU"], "versions": {"torch": "2.11.0"}}))
    record = json.loads(write_record(RecordSettings(seeds, tmp_path / "record.json")).read_text())
    assert (record["machine"], record["versions"]) == ({"gpus": ["a GPU"]}, {"torch": "2.11.0"})
    there.write_text("{")
    with pytest.raises(UserError, match=r"machine\.json: damaged"):
        write_record(RecordSettings(seeds, tmp_path / "another.json"))


def test_the_machine_has_no_name() -> None:
    found = machine()
    assert set(found) == {"cpu", "cores", "memory_gib", "gpus", "system", "python"}
    assert found["cores"] >= 1
    assert found["memory_gib"] > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model=/data/me/checkpoints/base", "model=base"),
        ("/a/b.json", "b.json"),
        ("see https://arxiv.org/abs/2509.25123", "see https://arxiv.org/abs/2509.25123"),
        ("bash bash/quickstart.sh, data/tiny", "bash bash/quickstart.sh, data/tiny"),
        ("[x:/u/one.parquet,y:/u/v/two.parquet]", "[x:one.parquet,y:two.parquet]"),
    ],
)
def test_paths_lose_their_folders(text: str, expected: str) -> None:
    assert without_places({"a": [text]}) == {"a": [expected]}


def test_bad_files_are_named(tmp_path: Path) -> None:
    bad = tmp_path / "times.txt"
    bad.write_text("pretrain 1\nrl soon\n")
    with pytest.raises(UserError, match=r"times.txt: line 2 is no 'stage seconds'"):
        read_times(bad)
    bad.write_text("alone\n")
    with pytest.raises(UserError, match="line 1 is no"):
        read_times(bad)
    (tmp_path / "t.json").write_text('{"rl": 3}')
    assert read_times(tmp_path / "t.json") == {"rl": 3.0}
    (tmp_path / "t.json").write_text("[3]")
    with pytest.raises(UserError, match=r"t.json: line 1 is no"):
        read_times(tmp_path / "t.json")
    (tmp_path / "c.yaml").write_text("a: [1\n")
    with pytest.raises(UserError, match=r"c.yaml: not readable as YAML"):
        read_config(tmp_path / "c.yaml")
    with pytest.raises(UserError, match=r"none.sh: no such file"):
        read_config(tmp_path / "none.sh")
    with pytest.raises(UserError, match=r"has no metrics.jsonl"):
        run_figures(tmp_path)


def test_metrics_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 4, "perf/gpu": "none", "train/loss": null, "val/loss": 0.25}\n')
    found: dict[str, Any] = run_figures(tmp_path)
    assert found == {"steps": 4, "val/loss first, last": [0.25, 0.25]}
