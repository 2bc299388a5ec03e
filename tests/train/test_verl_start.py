"""What a start of verl finds, and the configuration made of it, which ``--cfg`` shows before."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf
from sft_assets import make_model, make_rows, overrides

from compositionality.config.cli import parse
from compositionality.train.engines import show_verl, train_grpo, train_sft
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.run_folder import TRACKER, mark_complete, record_score
from compositionality.train.sft_settings import SftSettings
from compositionality.train.verl import launch, preflight, start

pytestmark = pytest.mark.full


class StartedError(Exception):
    """In the place of a run."""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def run_trainer(*_: Any, **__: Any) -> None:
        raise StartedError

    monkeypatch.setattr(launch, "run_trainer", run_trainer)
    monkeypatch.setattr(preflight, "check_training", lambda *_: None)
    monkeypatch.setenv("WANDB_MODE", "offline")
    return make_model(tmp_path / "model")


def started(train: Callable[[Any], None], settings: Any) -> Any:
    """The configuration of the trainer's processes, which is the one that ``--cfg`` showed."""
    shown = OmegaConf.create(show_verl(deepcopy(settings)))
    with pytest.raises(StartedError):
        train(settings)
    read = OmegaConf.load(Path(settings.trainer.output) / "config.yaml")
    assert OmegaConf.to_container(shown, resolve=True) == OmegaConf.to_container(read)
    return read


def test_rl_starts_and_goes_on_as_cfg_shows_it(model: Path, tmp_path: Path) -> None:
    out, rows = tmp_path / "out", tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"q": f"{n} + 1", "a": str(n + 1)}) + "\n" for n in range(40)))
    words = ["engine=verl", "run.device=cpu", f"model.path={model}", f"data.train_files=[{rows}]", "data.prompt_key=q"]
    words += [f"data.val_files=[{rows}]", "data.truth_key=a", "data.source=math", "data.apply_chat_template=false"]
    words += [f"trainer.output={out}", "data.prompts_per_step=4", "data.max_prompt_tokens=64", "rollout.max_tokens=64"]
    words += ["trainer.epochs=2"]
    first = started(train_grpo, parse(GrpoSettings, words))
    assert first.data.train_files == [str(out / "rows/train_files/0.parquet")]
    assert (first.trainer.resume_mode, first.trainer.val_before_train) == ("disable", True)
    assert (first.trainer.total_training_steps, first.trainer.logger) == (20, ["console", "wandb", "file"])
    assert first.actor_rollout_ref.model.custom_chat_template
    checkpoint = out / "steps/global_step_3"
    checkpoint.mkdir(parents=True)
    mark_complete(out / "steps", 3)
    record_score(out / "steps", 3, 0.5)
    (out / "steps/global_step_4").mkdir()  # incomplete
    again = started(train_grpo, parse(GrpoSettings, words)).trainer
    assert (again.resume_mode, again.resume_from_path) == ("resume_path", str(checkpoint))
    assert not again.val_before_train
    val = tmp_path / "others.jsonl"
    val.write_text("".join(rows.read_text().splitlines(keepends=True)[:20]))
    others = [word.replace("rows.jsonl", "others.jsonl") if "val_files" in word else word for word in words]
    assert started(train_grpo, parse(GrpoSettings, others)).trainer.val_before_train, "the score is of other problems"
    assert started(train_grpo, parse(GrpoSettings, [*words, "force=true"])) == OmegaConf.merge(
        first, {"run": {"force": True}}
    )


@pytest.mark.parametrize(("rows", "frequency"), [(8, -1), (20, "after_each_epoch")])
def test_sft_starts_and_goes_on_as_cfg_shows_it(model: Path, tmp_path: Path, rows: int, frequency: object) -> None:
    val, out = make_rows(tmp_path / "val.parquet", rows), tmp_path / "out"
    words = overrides(model, make_rows(tmp_path / "rows.parquet", 40), out, f"data.val_files=[{val}]")
    first = started(train_sft, parse(SftSettings, words))
    assert (first.trainer.test_freq, first.data.val_files) == (frequency, [str(val)] if rows > 16 else None)
    (out / "steps/global_step_2").mkdir(parents=True)
    (out / "steps" / TRACKER).write_text("2")
    assert started(train_sft, parse(SftSettings, words)).trainer.resume_from_path == str(out / "steps/global_step_2")


def test_the_configuration_of_the_settings_stays_as_it_is() -> None:
    config = OmegaConf.create({"run": {"model": "m"}, "model": {"path": "m"}, "data": {}, "trainer": {"test_freq": 1}})
    before, found = deepcopy(config), start.RunContext(["file"], {}, "/m", files={"val_files": None})
    ready: DictConfig = start.final(config, found)
    assert (ready.model.path, ready.trainer) == ("/m", {"test_freq": -1, "logger": ["file"]})
    assert config == before
    assert start.final(ready, found) == ready
