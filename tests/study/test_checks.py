"""A dry run of every entry point: inputs need not be there (those that are there are checked: test_refusals.py)."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from steps import BASES

from compositionality.config.cli import parse, run
from compositionality.config.verbs import entry_point
from compositionality.data.artefact import Recipe, new_artefact
from compositionality.errors import UserError
from compositionality.train.metrics import NO_SIGNAL, TOKENS, TRAINED
from compositionality.train.sft_settings import SftSettings, check_settings, settle_length, settle_validation

SFT = ("engine=single", "model.path=m", "data.train_files=[r.parquet]", "trainer.output=out", "run.device=cpu")
STEPS = {
    **{name: tuple(words.split()) for name, words in BASES.items() if name != "create_problems"},
    "draw_figure": ("inputs=[seed0:r]", "output=out"),
    "publish": ("what=[m]", "output=out", "licence=mit"),
    "report": ("study=s", "output=out"),
    "write_record": ("results=[accuracy/seed0:r/results.parquet]", "output=out"),
    "gpu_check": ("work=w", "logs=l", "device=cpu"),
    "preflight": ("profile=paper", "gpus=8", "gpu_memory_gb=80"),
}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "WORLD_SIZE", "NNODES", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)


def start(name: str, words: Sequence[str], monkeypatch: pytest.MonkeyPatch, *dry: str) -> int:
    """The exit code of the command, run as its entry point runs it."""
    schema, body, check, _ = entry_point(name)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *words, *dry])
    with pytest.raises(SystemExit) as end:
        run(schema, body, "", check=check)
    return int(end.value.code or 0)


@pytest.mark.parametrize("name", STEPS)
def test_no_input_need_be_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(name, STEPS[name], monkeypatch, "--dry-run") == 0
    assert list(tmp_path.iterdir()) == []


def test_every_entry_point_is_covered() -> None:
    examples = {path.stem for path in (Path(__file__).parents[2] / "examples").glob("*.py")}
    assert examples - STEPS.keys() == {"create_problems", "run_study"}  # no inputs; no steps


def test_sft_does_without_a_file_that_its_data_were_made_without(tmp_path: Path) -> None:
    """The validation file is left out where rows that were made without one are there, and only there."""
    train, val = tmp_path / "data/train.parquet", tmp_path / "data/test.parquet"
    words = ["model.path=m", f"data.train_files=[{train}]", f"data.val_files=[{val}]", "trainer.output=o"]

    def kept() -> bool:
        settings = parse(SftSettings, words)
        settle_validation(settings)
        return bool(settings.data.val_files)

    assert kept()
    with new_artefact(tmp_path / "data", Recipe("filter_rollouts", {})) as partial:
        partial.mkdir()
        (partial / "train.parquet").touch()
    assert not kept()
    val.touch()
    assert kept()


def test_sft_may_train_as_long_as_a_finished_run_or_a_part_of_it(tmp_path: Path) -> None:
    """Updates are those of the other run, tokens count its prompts; a run that is not finished is named."""
    run = tmp_path / "sft-bridge"
    (run / "final").mkdir(parents=True)
    rows = [{"step": step, "train/grad_norm": 1.0, TRAINED: 100 + step, TOKENS: 40 + step} for step in (1, 2, 3)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def length(*words: str) -> tuple[int | None, int | None]:
        settings = parse(SftSettings, [*SFT, *words])
        check_settings(settings)
        settle_length(settings)
        return settings.trainer.steps, settings.trainer.tokens

    assert length(f"trainer.steps_of={run}") == (3, None)
    assert length(f"trainer.tokens_of={run}") == (None, 306)
    parts = [length(f"trainer.steps_of={run}", f"trainer.part={number}/2")[0] for number in (1, 2)]
    assert parts == [1, 2]
    settings = parse(SftSettings, [*SFT, f"trainer.batch_of={run}", f"trainer.steps_of={run}"])
    settle_length(settings)
    assert (settings.trainer.steps, settings.trainer.batch_tokens) == (3, 42)  # of the loss, without prompts
    (run / "metrics.jsonl").write_text(json.dumps({**rows[0], NO_SIGNAL: 1, TRAINED: 0, TOKENS: 0}) + "\n")
    settings = parse(SftSettings, [*SFT, f"trainer.batch_of={run}", f"trainer.steps_of={run}"])
    settle_length(settings)
    assert (settings.trainer.steps, settings.trainer.batch_tokens) == (1, 1)  # of a run that made no update
    for words, told in (
        (["trainer.batch_of=absent"], "absent: not finished, and this trains as long as it did"),
        (["trainer.batch_of=a", "trainer.batch_tokens=2"], "batch_of=a: give trainer.batch_tokens or this, not both"),
        (["trainer.steps_of=absent"], "absent: not finished, and this trains as long as it did"),
        (["trainer.part=3/2"], "trainer.part=3/2: give K/N"),
    ):
        with pytest.raises(UserError, match=told):
            length(*words)
    assert length("trainer.steps_of=absent", "dry_run=true") == (None, None)
