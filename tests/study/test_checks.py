"""How long SFT trains, and on what it validates, by files that may not exist yet."""

import json
from pathlib import Path

import pytest

from compositionality.config.cli import parse
from compositionality.data.artefact import Recipe, new_artefact
from compositionality.errors import UserError
from compositionality.train.checks import check_settings
from compositionality.train.metrics import NO_SIGNAL, TOKENS, TRAINED
from compositionality.train.sft_settings import SftSettings, settle_length, settle_validation

SFT = ("engine=single", "model.path=m", "data.train_files=[r.parquet]", "trainer.output=out", "run.device=cpu")


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
        settle_length(settings, dry=settings.dry_run)
        return settings.trainer.steps, settings.trainer.tokens

    assert length(f"trainer.steps_of={run}") == (3, None)
    assert length(f"trainer.tokens_of={run}") == (None, 306)
    parts = [length(f"trainer.steps_of={run}", f"trainer.part={number}/2")[0] for number in (1, 2)]
    assert parts == [1, 2]
    settings = parse(SftSettings, [*SFT, f"trainer.batch_of={run}", f"trainer.steps_of={run}"])
    settle_length(settings, dry=False)
    assert (settings.trainer.steps, settings.trainer.batch_tokens) == (3, 42)  # of the loss, without prompts
    (run / "metrics.jsonl").write_text(json.dumps({**rows[0], NO_SIGNAL: 1, TRAINED: 0, TOKENS: 0}) + "\n")
    settings = parse(SftSettings, [*SFT, f"trainer.batch_of={run}", f"trainer.steps_of={run}"])
    settle_length(settings, dry=False)
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
