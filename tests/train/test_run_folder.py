"""The folder of a run: whose it is, and what a start may delete in it."""

from pathlib import Path

import pytest

from compositionality.data.artefact import Recipe
from compositionality.errors import UserError
from compositionality.train.common.checkpoints import mark_complete, resume
from compositionality.train.common.run_folder import RECIPE, TRACKER

RUN = Recipe("train", {"lr": 1})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["steps/notes.txt", "train.log", "tensorboard/events", "metrics.jsonl", "thesis.tex"])
@pytest.mark.parametrize("repaired", [True, False])
def test_p21_a_folder_that_is_no_runs_is_refused_and_left_alone(tmp_path: Path, name: str, repaired: bool) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(UserError, match="not of a training run"):
        resume(tmp_path, RUN, force=False, repaired=repaired)
    assert contents(tmp_path) == before


def test_p21_a_run_with_another_recipe_keeps_its_checkpoints(tmp_path: Path) -> None:
    resume(tmp_path, RUN, force=False)
    half = tmp_path / "steps" / "global_step_3"
    half.mkdir(parents=True)
    (half / "weights").write_text("not complete yet")
    before = contents(tmp_path)
    with pytest.raises(UserError, match="lr: 1 then, 2 now"):
        resume(tmp_path, Recipe("train", {"lr": 2}), force=False)
    assert contents(tmp_path) == before


def test_an_empty_folder_and_one_left_by_a_kill_at_the_start_are_taken(tmp_path: Path) -> None:
    (tmp_path / "wandb.id").write_text("0123456789abcdef\n")
    (tmp_path / ".recipe.json.partial").write_text("{")
    assert resume(tmp_path, RUN, force=False) == 0
    assert (tmp_path / RECIPE).is_file()


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff"])
def test_p18_a_damaged_recipe_or_seal_is_one_line(tmp_path: Path, content: bytes) -> None:
    resume(tmp_path, RUN, force=False)
    step = tmp_path / "steps" / "global_step_3"
    step.mkdir(parents=True)
    (step / "weights").write_text("w")
    mark_complete(tmp_path / "steps", 3)
    assert resume(tmp_path, RUN, force=False) == 3
    (step / "sealed.json").write_bytes(content)
    with pytest.raises(UserError, match=r"sealed\.json: damaged .* delete .*global_step_3 to go on"):
        resume(tmp_path, RUN, force=False)
    (tmp_path / RECIPE).write_bytes(content)
    with pytest.raises(UserError, match=r"recipe\.json: damaged .* --force"):
        resume(tmp_path, RUN, force=False)
    assert resume(tmp_path, RUN, force=True) == 0


def test_p18_a_damaged_tracker_is_one_line(tmp_path: Path) -> None:
    resume(tmp_path, RUN, force=False)
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps" / TRACKER).write_text("three")
    with pytest.raises(UserError, match="damaged"):
        resume(tmp_path, RUN, force=False, repaired=False)
