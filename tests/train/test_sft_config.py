"""verl's SFT: its configuration for every kind of machine, and what it alone refuses before it starts (P18)."""

import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from omegaconf import DictConfig, OmegaConf
from sft_assets import chat, make_model, make_rows, overrides

from compositionality import memory
from compositionality.config.cli import parse
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.train import engines
from compositionality.train.chat_rows import ChatRow
from compositionality.train.engines import settle_cluster, train_sft
from compositionality.train.sft_settings import SftSettings, check_settings
from compositionality.train.verl import configure, launch, preflight, sft
from compositionality.train.verl.configure import result_settings

pytestmark = pytest.mark.full

BASE = ["engine=verl", "model.path=models/base", "data.train_files=[rows.parquet]", "trainer.output=OUT"]
GPU = ["run.device=gpu", "model.dtype=bfloat16"]
MACHINES = {
    "two cores": ["run.device=cpu", "trainer.batch_rows=32", "data.max_length=128", "optim.lr=1e-3"],
    "one GPU": [*GPU, "run.processes=1"],
    "8 GPUs": [*GPU, "run.processes=8", "verl.data.truncation=right"],
    "4 nodes": [*GPU, "run.processes=8", "run.nodes=4", "run.node_rank=2", "run.master_addr=head"],
}

PAPER = [
    f"verl.optim.{word}" for word in ("lr_scheduler_type=cosine", "lr_warmup_steps=-1", "lr_warmup_steps_ratio=0.1")
]


def settings(*words: str) -> SftSettings:
    return parse(SftSettings, [*BASE, *words])


def composed(*words: str) -> DictConfig:
    given = settings(*words)
    check_settings(given)
    settle_cluster(given, imagined=True)
    config = configure.sft_config(given)
    preflight.check_sft_settings(config, config.run.processes * config.run.nodes)
    return config


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("config") / "model")


@pytest.mark.parametrize("machine", MACHINES)
def test_p12_verl_takes_the_configuration(machine: str, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from verl.utils.config import omega_conf_to_dataclass

    monkeypatch.delenv("VERL_PLATFORM", raising=False)
    config = composed(*MACHINES[machine], *PAPER, f"model.path={model}")
    engine = omega_conf_to_dataclass(config.engine)
    optimiser = omega_conf_to_dataclass(config.optim)
    assert engine.strategy == "fsdp2"
    assert engine.mixed_precision["param_dtype"] == ("fp32" if machine == "two cores" else "bf16")
    assert (optimiser.lr_scheduler_type, optimiser.lr_warmup_steps_ratio, optimiser.clip_grad) == ("cosine", 0.1, 1.0)
    assert list(optimiser.betas) == [0.9, 0.95]
    model_config = omega_conf_to_dataclass(config.model)
    assert model_config.hf_config.model_type == "llama"
    assert model_config.use_remove_padding is (machine != "two cores")
    assert "compositionality.train.verl.log_probs" in sys.modules
    assert omega_conf_to_dataclass(config.checkpoint).save_contents == ["model", "optimizer", "extra"]


def test_the_defaults_are_the_dataclasses() -> None:
    config = composed("run.device=gpu", "run.processes=1")
    assert (config.data.train_batch_size, config.data.max_length, config.trainer.total_epochs) == (128, 2048, 2)
    assert (config.optim.lr, config.optim.weight_decay, list(config.optim.betas)) == (2e-5, 0.01, [0.9, 0.95])
    assert (config.optim.lr_scheduler_type, config.optim.lr_warmup_steps, config.run.decay_power) == ("constant", 10, 1)
    assert config.model.lora_rank == 0


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("optim.learning_rate=1", "optim.learning_rate: no such setting"),
        ("optim.lr=fast", "optim.lr"),
        ("run.device=tpu", "run.device=tpu: must be one of auto, cpu, gpu"),
        ("model.path=???", "no value for model.path; give it as key=value"),
        ("a b", "a b"),
        ("engine=trl", "engine=trl: must be one of single, verl"),
        ("verl.optim.learning_rate=1", "verl.optim.learning_rate=1: verl has no such key"),
        ("verl.optim.lr.fast=1", "verl.optim.lr.fast=1: verl has no such key"),
        ("mesh.tensor=2", "mesh.tensor=2: engine=verl does not have it"),
        ("mesh.shard=false", "mesh.shard=False: engine=verl does not have it"),
        ("trainer.log_every=5", "trainer.log_every=5: engine=verl does not have it"),
        ("run.nodes=2", "NNODES=2 needs a running Ray cluster (RAY_ADDRESS or run.ray_address=HOST:PORT); or start"),
        ("run.processes=7 dry_run=true", "trainer.batch_rows=128 is not a multiple of the 7 processes"),
        ("data.max_length=20000 dry_run=true", "trainer.micro_batch_tokens=16384 is less than data.max_length=20000"),
        ("verl.optim.lr_scheduler_type=linear dry_run=true", "verl refuses its configuration"),
        ("verl.data.pad_mode=right dry_run=true", "verl.data.pad_mode=right: the rows that both engines read do not"),
        ("verl.engine.strategy=ddp dry_run=true", "verl refuses its configuration: strategy ddp not supported"),
    ],
)
def test_p18_a_bad_word_is_told_in_one_line(word: str, said: str) -> None:
    words = [word] if word == "a b" else word.split()
    with pytest.raises(UserError) as error:
        train_sft(settings(*words))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_dry_run_prints_the_command_for_machines_that_are_not_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    train_sft(settings(*MACHINES["4 nodes"], "dry_run=true"))
    line = capsys.readouterr().out.strip().splitlines()[-1]
    for word in ("--nnodes=4", "--node-rank=2", "--master-addr=head", "--nproc-per-node=8", "OUT/config.yaml"):
        assert word in line
    assert "VERL_PLATFORM" not in line
    train_sft(settings("run.device=gpu", "run.processes=2", "dry_run=true"))
    assert "--standalone --nproc-per-node=2" in capsys.readouterr().out
    monkeypatch.setenv("NNODES", "4")
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    train_sft(settings("run.device=gpu", "run.processes=2", "dry_run=true"))
    assert "-m compositionality.train.verl.sft" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"starts all nodes; leave out run\.node_rank"):
        train_sft(settings("run.device=gpu", "run.processes=2", "dry_run=true", "run.node_rank=1"))
    monkeypatch.delenv("NNODES")
    monkeypatch.delenv("RAY_ADDRESS")
    train_sft(settings("run.device=cpu", "dry_run=true"))
    assert "VERL_PLATFORM=cpu" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_nodes_that_the_single_file_trainer_does_not_use_are_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNODES", "2")
    for name in ("on_ranks", "resolve_model"):
        monkeypatch.setattr(engines, name, lambda *_: None)
    train_sft(settings("engine=single"))
    assert "NNODES is left out: engine=single uses this machine" in capsys.readouterr().out


def _settings(*more: str) -> dict[str, object]:
    return result_settings(composed(*overrides(Path("m"), Path("r"), Path("o"), *more)))


def test_only_what_changes_the_weights_is_part_of_the_recipe() -> None:
    conveniences = [
        "trainer.keep=9",
        "trainer.save_every=7",
        "verl.trainer.project_name=x",
        "verl.data.num_workers=1",
        "force=true",
    ]
    assert _settings() == _settings(*conveniences)
    for word in ("optim.lr=1", "data.max_length=9", "data.seed=2", "trainer.epochs=9", "verl.engine.seed=1"):
        assert _settings() != _settings(word), word


def test_the_written_configuration_is_resolved(tmp_path: Path) -> None:
    config = composed("run.device=cpu")
    launch.write_config(config, tmp_path / "run" / "config.yaml")
    read = OmegaConf.load(tmp_path / "run" / "config.yaml")
    assert read.data.train_files == [str(Path("rows.parquet").absolute())]  # on a cluster it starts elsewhere
    assert read.trainer.default_local_dir == str(Path("OUT/steps").absolute())


def refusal(model: Path, rows: Path, out: Path, *more: str) -> str:
    with pytest.raises(UserError) as error:
        train_sft(parse(SftSettings, overrides(model, rows, out, *more)))
    assert "\n" not in str(error.value)
    assert not (out / "steps").exists()
    return str(error.value)


def test_p18_long_rows_are_counted_and_refused_or_cut(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.parquet"
    write_table(pa.table({"messages": [chat("a", "b" * length) for length in [1] * 30 + [100] * 2]}), rows)
    told = refusal(model, rows, tmp_path / "out")
    assert "2 of 32 rows are longer than data.max_length=64 tokens (longest 104, first is row 30)" in told
    assert "verl.data.truncation=right" in told
    preflight.check_lengths(rows, [ChatRow([1] * 65, [1] * 65)], 64, "right")
    assert "1 of 1 rows are longer than data.max_length=64 tokens" in (told := capsys.readouterr().out)
    assert told.endswith("their ends are cut\n")


def test_p18_batches_that_cannot_be(model: Path, tmp_path: Path) -> None:
    rows = make_rows(tmp_path / "rows.parquet", 20)
    out = tmp_path / "out"
    assert "20 rows are less than one batch" in refusal(model, rows, out, "trainer.batch_rows=32")
    assert "not a multiple of the 3 processes" in refusal(model, rows, out, "run.processes=3")
    assert "trainer.micro_batch_tokens=32 is less than" in refusal(model, rows, out, "trainer.micro_batch_tokens=32")


def test_p18_too_little_disk_for_the_checkpoints(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10**5))
    rows = make_rows(tmp_path / "rows.parquet", 20)
    told = refusal(model, rows, tmp_path / "out")
    assert re.search(r"SFT: needs [\d.]+ MB of disk \(2 checkpoints .* 0\.1 MB are there; .*trainer\.keep", told)


def test_p18_too_little_memory(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "host_bytes", lambda: 1e9)
    rows = make_rows(tmp_path / "rows.parquet", 20)
    told = refusal(model, rows, tmp_path / "out")
    assert re.search(r"SFT: needs 1\.\d GB of memory of each node \(.* 1\.0 GB are there; .*micro_batch_tokens", told)


def test_another_recipe_does_not_take_over_an_unfinished_run(model: Path, tmp_path: Path) -> None:
    from compositionality.train.run_folder import resume

    rows, out = make_rows(tmp_path / "rows.parquet", 20), tmp_path / "out"

    def recipe(*more: str) -> Any:
        settings = parse(SftSettings, overrides(model, rows, out, *more))
        settle_cluster(settings, imagined=True)
        return sft.make_recipe(configure.sft_config(settings), ranks=1)

    assert resume(out, recipe(), force=False, repaired=False) == 0
    (out / "steps" / "global_step_4").mkdir(parents=True)
    (out / "steps" / "latest_checkpointed_iteration.txt").write_text("4")
    assert resume(out, recipe(), force=False, repaired=False) == 4
    with pytest.raises(UserError, match=r"optim.lr: 0.003 then, 0.1 now.*--force"):
        resume(out, recipe("optim.lr=0.1"), force=False, repaired=False)
    make_rows(rows, 21)
    with pytest.raises(UserError, match=r"train_files/.* has changed"):
        resume(out, recipe(), force=False, repaired=False)
    assert resume(out, recipe("optim.lr=0.1"), force=True, repaired=False) == 0
    assert not (out / "steps").exists()
