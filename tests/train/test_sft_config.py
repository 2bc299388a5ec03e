"""verl's SFT: its configuration for every kind of machine, and what it alone refuses before it starts (P18)."""

import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from omegaconf import DictConfig, OmegaConf
from sft_assets import make_model, make_rows, overrides

from compositionality import memory
from compositionality.config.cli import parse
from compositionality.errors import UserError
from compositionality.rollout.prompts import ChatRow
from compositionality.train import engines
from compositionality.train.checks import check_settings
from compositionality.train.engines import settle_cluster, train_sft
from compositionality.train.rows import check_lengths
from compositionality.train.sft_settings import SftSettings
from compositionality.train.verl import configure, launch, preflight, sft

pytestmark = pytest.mark.full

BASE = ["engine=verl", "model.path=models/base", "data.train_files=[rows.parquet]", "trainer.output=OUT"]
GPU = ["run.device=gpu", "model.dtype=bfloat16"]
MACHINES = {
    "two cores": ["run.device=cpu", "trainer.batch_rows=32", "data.max_length=128", "optim.lr=1e-3"],
    "8 GPUs": [*GPU, "run.processes=8", "verl.data.truncation=right", "model.attention=flash_attention_2"],
    "4 nodes": [*GPU, "run.processes=8", "run.nodes=4", "run.node_rank=2", "run.master_addr=head"],
}

PAPER = [
    f"verl.optim.{word}" for word in ("lr_scheduler_type=cosine", "lr_warmup_steps=-1", "lr_warmup_steps_ratio=0.1")
]


def settings(*words: str) -> SftSettings:
    return parse(SftSettings, [*BASE, *words])


def composed(*words: str) -> DictConfig:
    return compose(settings(*words))


def compose(given: SftSettings) -> DictConfig:
    """The configuration of settings, after all checks that need no files."""
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
    assert (config.run.stall_minutes, composed("run.stall_minutes=7").run.stall_minutes) == (30, 7)  # else the device's


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("verl.optim.lr.fast=1", "verl.optim.lr.fast=1: verl has no such key"),
        ("mesh.tensor=2", "mesh.tensor=2: engine=verl does not have it"),
        ("run.nodes=2", "NNODES=2 needs a running Ray cluster (RAY_ADDRESS or run.ray_address=HOST:PORT); or start"),
        ("verl.optim.lr_scheduler_type=linear dry_run=true", "verl refuses its configuration"),
        ("verl.data.pad_mode=right dry_run=true", "verl.data.pad_mode=right: the rows that both engines read do not"),
    ],
)
def test_p18_a_bad_word_is_told_in_one_line(word: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        train_sft(settings(*word.split()))
    assert said in str(error.value)


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


def test_only_what_changes_the_weights_is_part_of_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("m")
    rows = make_rows(tmp_path / "rows.parquet", 20)

    def recipe(*more: str) -> object:
        words = overrides(tmp_path / "model", rows, tmp_path / "out", *more)
        return sft.make_recipe(composed(*words), ranks=1).identity()

    before = recipe()
    conveniences = ("trainer.keep=9", "trainer.save_every=7", "verl.trainer.project_name=x", "verl.data.num_workers=1")
    conveniences += ("trainer.micro_batch_tokens=9000", "model.activation_checkpointing=true")
    assert recipe(*conveniences, "force=true") == before
    for word in ("optim.lr=1", "data.max_length=9", "data.seed=2", "trainer.epochs=9", "verl.engine.seed=1"):
        assert recipe(word) != before, word
    make_rows(rows, 21)
    assert recipe() != before


def test_the_written_configuration_is_resolved(tmp_path: Path) -> None:
    config = composed("run.device=cpu")
    launch.write_config(config, tmp_path / "run" / "config.yaml")
    read = OmegaConf.load(tmp_path / "run" / "config.yaml")
    assert OmegaConf.to_container(read) == OmegaConf.to_container(config, resolve=True)
    assert read.data.train_files == [str(Path("rows.parquet").absolute())]  # on a cluster it starts elsewhere
    assert read.trainer.default_local_dir == str(Path("OUT/steps").absolute())


def test_p18_long_rows_are_counted_and_refused_or_cut(capsys: pytest.CaptureFixture[str]) -> None:
    rows, path = [ChatRow([1], [1]), ChatRow([1] * 65, [1] * 65)], Path("rows.parquet")
    check_lengths(path, rows, 65, "error")
    check_lengths(path, rows, 64, "right")
    told = r"rows.parquet: 1 of 2 rows are longer than data.max_length=64 tokens (longest 65, first is row 1); "
    assert capsys.readouterr().out == f"{told}their ends are cut\n"
    with pytest.raises(UserError, match=f"^{re.escape(told)}raise .* or cut their ends with verl.data.trunc"):
        check_lengths(path, rows, 64, "error")


def test_p18_too_little_memory_or_disk(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = parse(SftSettings, overrides(model, make_rows(tmp_path / "rows.parquet", 20), tmp_path / "out"))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10**5))
    with pytest.raises(UserError, match=r"SFT: needs [\d.]+ MB of disk \(2 checkpoints .* 0\.1 MB are available; .*k"):
        train_sft(given)
    monkeypatch.setattr(memory, "host_bytes", lambda: 1e9)
    with pytest.raises(UserError, match=r"SFT: needs 1\.\d GB of memory of each node \(.* 1\.0 GB are available; .*l"):
        train_sft(given)
    assert not (tmp_path / "out" / "steps").exists()
