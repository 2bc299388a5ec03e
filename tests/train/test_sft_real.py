"""verl's SFT trainer, really run on a CPU: stopped and resumed, on two ranks, exported and reloaded, beside ours."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from base_models import make_reasoning
from bash_runs import warm_python
from sft_assets import make_model, make_rows, overrides, split_in_two
from trainer_runs import kill_at, train

from compositionality.config.cli import parse
from compositionality.data.artefact import file_hash, verify
from compositionality.data.parquet import write_table
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.train.engines import train_sft
from compositionality.train.metrics import TOKENS, read_metrics
from compositionality.train.rows import load_rows
from compositionality.train.run_folder import latest_step, saved_steps
from compositionality.train.sft_settings import SftSettings
from compositionality.train.training_report import report_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("sft")
    return make_model(folder / "model"), make_rows(folder / "rows.parquet", 200), folder


@pytest.fixture(scope="module")
def uninterrupted(made: tuple[Path, Path, Path]) -> Path:
    """A run of 24 steps, 12 in each epoch."""
    model, rows, folder = made
    out = folder / "uninterrupted"
    train("train_sft", overrides(model, rows, out, "trainer.save_every=4"))
    return out


def test_p07_a_killed_run_ends_with_the_same_weights(
    made: tuple[Path, Path, Path], uninterrupted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stopped twice: within an epoch, and at the end of one."""
    model, rows, folder = made
    out = folder / "killed"
    arguments = overrides(model, rows, out, "trainer.save_every=4")
    for step in (8, 12):
        kill_at(step, lambda step=step: latest_step(out / "steps") == step, "train_sft", arguments, out)
    assert "going on from step 12" in train("train_sft", arguments)
    for run in (out, uninterrupted):
        assert saved_steps(run / "steps") == [20, 24]  # trainer.keep=2
    assert file_hash(out / "final/model.safetensors") == file_hash(uninterrupted / "final/model.safetensors")
    steps = [row["step"] for row in read_metrics(out / "metrics.jsonl") if "train/loss" in row]
    assert steps == list(range(1, 25))
    train_sft(parse(SftSettings, arguments))
    assert "is already there" in capsys.readouterr().out


def test_the_model_says_what_its_training_did(made: tuple[Path, Path, Path], uninterrupted: Path) -> None:
    model, path, _ = made
    rows = load_rows(path, load_tokenizer(model), 64)
    longest, shortest = (ends(sum(row.loss_mask) for row in rows) for ends in (max, min))
    report = report_of(uninterrupted / "final")
    assert report is not None
    assert (report.updates, report.rows) == (24, 200)
    counts = [row[TOKENS] for row in read_metrics(uninterrupted / "metrics.jsonl") if TOKENS in row]
    assert len(counts) == 24
    assert report.tokens == sum(counts)
    assert all(16 * shortest <= count <= 16 * longest for count in counts)  # verl drops the last rows of an epoch


def test_p13_the_export_computes_what_the_checkpoint_computes(uninterrupted: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    final = uninterrupted / "final"
    verify(final)
    assert json.loads((final / "config.json").read_text())["dtype"] == "float32"
    state = torch.load(
        uninterrupted / "steps/global_step_24/model_world_size_1_rank_0.pt", weights_only=False, map_location="cpu"
    )
    model = AutoModelForCausalLM.from_pretrained(final)
    raw = AutoModelForCausalLM.from_config(model.config)
    raw.load_state_dict({name: getattr(tensor, "to_local", lambda t=tensor: t)() for name, tensor in state.items()})
    ids = AutoTokenizer.from_pretrained(final)("reverse:abcd", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        assert torch.equal(model.eval()(ids).logits, raw.eval()(ids).logits)
    assert AutoTokenizer.from_pretrained(final).chat_template


def test_two_ranks_train_and_export(made: tuple[Path, Path, Path], uninterrupted: Path) -> None:
    import torch
    from safetensors.torch import load_file

    model, rows, folder = made
    out = folder / "two"
    val = make_rows(folder / "val.parquet", 40, seed=1)
    files = [f"data.train_files={split_in_two(rows, folder)}", f"data.val_files=[{val}]"]
    more = [*files, "run.processes=2", "trainer.epochs=1", "trainer.logger=[tensorboard]"]
    train("train_sft", overrides(model, rows, out, *more), WANDB_MODE="offline")
    assert list(out.glob("wandb/offline-run-*"))
    assert list(out.glob("tensorboard/events*"))
    metrics = read_metrics(out / "metrics.jsonl")
    one = [row["train/loss"] for row in read_metrics(uninterrupted / "metrics.jsonl") if "train/loss" in row]
    two = [row["train/loss"] for row in metrics if "train/loss" in row]
    assert two[0] == pytest.approx(one[0], rel=1e-5)  # the same rows, cut otherwise
    assert metrics[0][TOKENS] == read_metrics(uninterrupted / "metrics.jsonl")[0][TOKENS]
    assert any("val/loss" in row for row in metrics)
    trained = load_file(out / "final/model.safetensors")
    assert trained.keys() == load_file(model / "model.safetensors").keys()
    for name, tensor in merged_by_verl(out / "steps/global_step_12", folder / "merged").items():
        assert torch.equal(trained[name].bfloat16(), tensor), name  # verl's merger rounds


def merged_by_verl(checkpoint: Path, target: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    merger = [warm_python(), "-m", "verl.model_merger", "merge", "--backend", "fsdp"]
    merger += ["--local_dir", str(checkpoint), "--target_dir", str(target)]
    subprocess.run(merger, check=True, capture_output=True, timeout=900, env={**os.environ, "VERL_PLATFORM": "cpu"})
    return load_file(target / "model.safetensors")


def test_p08_numbers_gone_wrong_stop_the_run_and_keep_the_checkpoint(tmp_path: Path) -> None:
    """Of a model whose template opens a thought in the prompt; before they are those of the single-file trainer."""
    model, rows = make_reasoning(tmp_path / "model", "r1-distill"), tmp_path / "rows.parquet"
    answers = [f"{number} and 1\n</think>\n\n{number + 1}" for number in range(16)]
    write_table(pa.table({"prompt": ["1+1?"] * 16, "response": answers}), rows)
    more = ["trainer.epochs=9", "trainer.keep=5", "trainer.save_every=1", "optim.lr=1e30", "optim.warmup_steps=0"]
    printed = train("train_sft", overrides(model, rows, tmp_path / "nan", *more), code=2)
    last = printed.strip().splitlines()[-1]
    assert last.startswith(("error: SFT: the loss is nan at step", "error: SFT: no update since step 1: "))
    assert (tmp_path / "nan/steps/global_step_1/model_world_size_1_rank_0.pt").is_file()
    assert not (tmp_path / "nan/final").exists()
    train_sft(parse(SftSettings, overrides(model, rows, tmp_path / "single", "engine=single", "trainer.steps=1")))
    ours, verls = (read_metrics(tmp_path / name / "metrics.jsonl")[0] for name in ("single", "nan"))
    assert verls["train/loss"] == pytest.approx(ours["train/loss"], rel=1e-4)
    assert verls[TOKENS] == ours[TOKENS]
