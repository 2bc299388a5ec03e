"""The SFT configuration composes against the pinned verl, for every kind of machine."""

from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf
from sft_assets import make_model, overrides

from compositionality.errors import UserError
from compositionality.train.verl import launch, sft
from compositionality.train.verl.recipe import result_settings

BASE = ["lab.model=models/base", "lab.train_file=rows.parquet", "lab.output=OUT"]
MACHINES = {
    "two cores": ["device=cpu", "data.train_batch_size=32", "data.max_length=128", "optim.lr=1e-3"],
    "one GPU": ["device=gpu", "lab.processes=1"],
    "8 GPUs": ["device=gpu", "lab.processes=8", "data.truncation=right"],
    "4 nodes": ["device=gpu", "lab.processes=8", "lab.nodes=4", "lab.node_rank=2", "lab.master_addr=head"],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("config") / "model")


@pytest.mark.parametrize("machine", MACHINES)
def test_p12_verl_takes_the_configuration(machine: str, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from verl.utils.config import omega_conf_to_dataclass

    monkeypatch.delenv("VERL_PLATFORM", raising=False)
    config = launch.compose_config("sft", [*BASE, *MACHINES[machine], f"lab.model={model}"])
    engine = omega_conf_to_dataclass(config.engine)
    optimiser = omega_conf_to_dataclass(config.optim)
    assert engine.strategy == "fsdp2"
    assert engine.mixed_precision["param_dtype"] == ("fp32" if machine == "two cores" else "bf16")
    assert (optimiser.lr_scheduler_type, optimiser.lr_warmup_steps_ratio, optimiser.clip_grad) == ("cosine", 0.1, 1.0)
    assert list(optimiser.betas) == [0.9, 0.95]
    assert omega_conf_to_dataclass(config.model).hf_config.model_type == "llama"
    assert omega_conf_to_dataclass(config.checkpoint).save_contents == ["model", "optimizer", "extra"]


def test_the_papers_values_are_the_defaults() -> None:
    config = launch.compose_config("sft", [*BASE, "device=gpu"])
    assert (config.data.train_batch_size, config.data.max_length, config.trainer.total_epochs) == (128, 5120, 2)
    assert (config.optim.lr, config.optim.weight_decay) == (2e-5, 0.01)
    assert config.model.lora_rank == 0


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("optim.learning_rate=1", "Could not override 'optim.learning_rate'"),
        ("device=tpu", "Could not find 'device/tpu'"),
        ("lab.model=???", "no value for lab.model; give it as key=value"),
        ("a b", "a b"),
    ],
)
def test_p18_a_bad_word_is_told_in_one_line(word: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        launch.compose_config("sft", [*BASE, word])
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_dry_run_prints_the_command_for_machines_that_are_not_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sft.train(launch.compose_config("sft", [*BASE, *MACHINES["4 nodes"], "lab.dry_run=true"]))
    line = capsys.readouterr().out.strip().splitlines()[-1]
    for word in ("--nnodes=4", "--node-rank=2", "--master-addr=head", "--nproc-per-node=8", "OUT/config.yaml"):
        assert word in line
    assert "VERL_PLATFORM" not in line
    sft.train(launch.compose_config("sft", [*BASE, "device=gpu", "lab.dry_run=true"]))
    assert "--standalone --nproc-per-node=gpu" in capsys.readouterr().out
    sft.train(launch.compose_config("sft", [*BASE, "device=cpu", "lab.dry_run=true"]))
    assert "VERL_PLATFORM=cpu" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def _settings(*more: str) -> dict[str, object]:
    config: DictConfig = launch.compose_config("sft", overrides(Path("m"), Path("r"), Path("o"), *more))
    return result_settings(config)


def test_only_what_changes_the_weights_is_part_of_the_recipe() -> None:
    conveniences = [
        "lab.keep=9",
        "trainer.save_freq=7",
        "trainer.project_name=x",
        "data.num_workers=1",
        "lab.force=true",
    ]
    assert _settings() == _settings(*conveniences)
    for word in ("optim.lr=1", "data.max_length=9", "trainer.seed=2", "trainer.total_epochs=9", "engine.seed=1"):
        assert _settings() != _settings(word), word


def test_the_written_configuration_is_resolved(tmp_path: Path) -> None:
    config = launch.compose_config("sft", [*BASE, "device=cpu"])
    launch.write_config(config, tmp_path / "run" / "config.yaml")
    read = OmegaConf.load(tmp_path / "run" / "config.yaml")
    assert read.data.train_files == ["rows.parquet"]
    assert read.trainer.default_local_dir == "OUT/steps"
