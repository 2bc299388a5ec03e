"""The folder of a run: whose it is, and what a start may delete in it."""

import re
import shutil
from pathlib import Path

import pytest

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.errors import UserError
from compositionality.train import run_folder
from compositionality.train.run_folder import (
    RECIPE,
    TRACKER,
    check_run,
    is_finished,
    latest_step,
    mark_complete,
    prune,
    resume,
    saved_steps,
    take_run_folder,
)

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


def test_p21_a_run_with_another_recipe_or_model_keeps_its_checkpoints(tmp_path: Path) -> None:
    model, other = (tmp_path / name for name in ("model", "other"))
    for path in (model, other):
        path.write_text(path.name)
    run = tmp_path / "run"
    resume(run, Recipe("train", {"lr": 1}, {"model": model}), force=False)
    half = run / "steps" / "global_step_3"
    half.mkdir(parents=True)
    (half / "weights").write_text("not complete yet")
    before = contents(run)
    for lr, given, told in ((2, model, "lr: 1 then, 2 now"), (1, other, "model has changed")):
        with pytest.raises(UserError, match=rf"started differently \({told}\); add --force"):
            resume(run, Recipe("train", {"lr": lr}, {"model": given}), force=False)
    assert contents(run) == before


def test_a_run_without_its_id_in_wandb_gets_another(tmp_path: Path) -> None:
    resume(tmp_path, RUN, force=False)
    file = tmp_path / "wandb.id"
    first = file.read_text()
    file.unlink()
    resume(tmp_path, RUN, force=False)
    second = file.read_text()
    assert second not in (first, "\n")
    resume(tmp_path, RUN, force=False)
    assert file.read_text() == second


def test_an_empty_folder_and_one_left_by_a_kill_at_the_start_are_taken(tmp_path: Path) -> None:
    (tmp_path / "wandb.id").write_text("0123456789abcdef\n")
    (tmp_path / ".recipe.json.partial").write_text("{")
    assert resume(tmp_path, RUN, force=False) == 0
    assert (tmp_path / RECIPE).is_file()


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff"])
def test_p18_a_damaged_recipe_seal_or_tracker_is_one_line(tmp_path: Path, content: bytes) -> None:
    resume(tmp_path, RUN, force=False)
    step = tmp_path / "steps" / "global_step_3"
    step.mkdir(parents=True)
    (step / "weights").write_text("w")
    mark_complete(tmp_path / "steps", 3)
    assert resume(tmp_path, RUN, force=False) == 3
    (step / "sealed.json").write_bytes(content)
    with pytest.raises(UserError, match=r"sealed\.json: damaged .* delete .*global_step_3 to go on"):
        resume(tmp_path, RUN, force=False)
    (tmp_path / "steps" / TRACKER).write_bytes(content)
    with pytest.raises(UserError, match=r"iteration\.txt: damaged \(not a number\); write the step"):
        resume(tmp_path, RUN, force=False, repaired=False)
    (tmp_path / RECIPE).write_bytes(content)
    with pytest.raises(UserError, match=r"recipe\.json: damaged .* --force"):
        resume(tmp_path, RUN, force=False)
    for left in ("samples", "best"):
        (tmp_path / left).mkdir()
    assert resume(tmp_path, RUN, force=True) == 0
    assert not {"samples", "best", "steps"} & {path.name for path in tmp_path.iterdir()}


def finished_run(folder: Path, recipe: Recipe) -> None:
    """A run that has ended after three steps, as either engine leaves it."""
    resume(folder, recipe, force=False)
    (folder / "steps" / "global_step_3").mkdir(parents=True)
    (folder / "steps" / "global_step_3" / "weights").write_text("w")
    mark_complete(folder / "steps", 3)
    (folder / "steps" / "finished").write_text("3")
    with new_artefact(folder / "final", recipe) as partial:
        partial.mkdir()


LENGTHENED = [  # settings of the run, those that are asked for, whether it goes on, or what is said
    ({"trainer.steps": 3}, {"trainer.steps": 5}, True),
    ({"trainer.steps": 3, "optim.decay_power": 0.0}, {"trainer.steps": 5, "optim.decay_power": 0.0}, True),
    ({"trainer.steps": None, "trainer.total_epochs": 1}, {"trainer.steps": None, "trainer.total_epochs": 2}, True),
    ({"trainer.steps": 3}, {"trainer.steps": 2}, "trainer.steps: 3 then, 2 now"),
    ({"trainer.steps": 3}, {"trainer.steps": 5, "lr": 1}, "lr: None then, 1 now"),
    ({"trainer.steps": 3}, {"trainer.steps": None, "trainer.epochs": 2}, "trainer.epochs: None then, 2 now"),
    (
        {"trainer.steps": 3, "optim.decay_power": 1.0},
        {"trainer.steps": 5, "optim.decay_power": 1.0},
        "cannot be lengthened, since with optim.decay_power=1.0 the learning rate depends on the number of steps",
    ),
    (
        {"trainer.steps": 3, "actor.optim.lr_scheduler_type": "cosine"},
        {"trainer.steps": 5, "actor.optim.lr_scheduler_type": "cosine"},
        "cannot be lengthened, since with actor.optim.lr_scheduler_type=cosine",
    ),
]


@pytest.mark.parametrize(("before", "now", "goes_on"), LENGTHENED)
def test_a_finished_run_is_lengthened_where_the_rate_does_not_depend_on_its_length(
    tmp_path: Path, before: dict[str, object], now: dict[str, object], goes_on: bool | str
) -> None:
    longer = Recipe("train", now)
    finished_run(tmp_path, Recipe("train", before))
    untouched = contents(tmp_path)
    if goes_on is not True:
        for start in (is_finished, check_run):
            with pytest.raises(UserError, match=re.escape(str(goes_on))):
                start(tmp_path / "final" if start is is_finished else tmp_path, longer, force=False)
        assert contents(tmp_path) == untouched
        return
    check_run(tmp_path, longer, force=False)
    assert contents(tmp_path) == untouched
    assert not is_finished(tmp_path / "final", longer, force=False)
    assert resume(tmp_path, longer, force=False) == 3
    assert not (tmp_path / "steps" / "finished").exists()
    take_run_folder(tmp_path, longer, force=False)  # and again, after a kill
    assert (tmp_path / "steps" / "global_step_3" / "weights").is_file()
    assert contents(tmp_path)["wandb.id"] == untouched["wandb.id"]


def test_a_run_whose_checkpoints_are_gone_is_not_lengthened(tmp_path: Path) -> None:
    finished_run(tmp_path, Recipe("train", {"trainer.steps": 3}))
    shutil.rmtree(tmp_path / "steps")
    with pytest.raises(UserError, match=r"no checkpoint is left in .*steps to go on from; add --force"):
        is_finished(tmp_path / "final", Recipe("train", {"trainer.steps": 5}), force=False)


def save(steps: Path, step: int, *, complete: bool = True) -> None:
    path = run_folder.folder(steps, step) / "actor"
    path.mkdir(parents=True)
    (path / "model.pt").write_text(f"weights {step}")
    (steps / TRACKER).write_text(str(step))
    if complete:
        mark_complete(steps, step)


def test_p08_a_half_written_checkpoint_is_never_used_and_an_empty_tracker_repaired(tmp_path: Path) -> None:
    run_folder.repair(tmp_path / "steps")  # of nothing
    assert latest_step(tmp_path / "steps") == 0
    save(tmp_path, 2)
    save(tmp_path, 4, complete=False)
    run_folder.repair(tmp_path)
    assert (latest_step(tmp_path), saved_steps(tmp_path)) == (2, [2])
    (tmp_path / TRACKER).write_text("")  # verl was killed between opening and writing it
    run_folder.repair(tmp_path)
    assert latest_step(tmp_path) == 2


def test_p08_an_altered_or_missing_file_is_named(tmp_path: Path) -> None:
    save(tmp_path, 2)
    path = run_folder.folder(tmp_path, 2) / "actor" / "model.pt"
    path.write_text("weights 3")
    with pytest.raises(UserError, match=r"model.pt: missing or altered"):
        run_folder.repair(tmp_path)
    path.unlink()
    with pytest.raises(UserError, match=r"model.pt: missing or altered"):
        run_folder.repair(tmp_path)


def test_the_best_checkpoint_outlives_the_last_ones(tmp_path: Path) -> None:
    for step, score in ((2, 0.5), (4, 0.9), (6, 0.9), (8, 0.1), (10, 0.2)):
        save(tmp_path, step)
        run_folder.record_score(tmp_path, step, score)
        before = saved_steps(tmp_path)
        prune(tmp_path, "all", keep_best=True)
        assert saved_steps(tmp_path) == before
        prune(tmp_path, 2, keep_best=True)
    assert saved_steps(tmp_path) == [4, 8, 10]
    assert run_folder.best_step(tmp_path) == 4
    run_folder.record_score(tmp_path, 12, 1.0)  # validated, not saved
    assert run_folder.best_step(tmp_path) == 4


def test_scores_on_other_validation_problems_are_dropped(tmp_path: Path) -> None:
    """best/ would compare them with those that follow."""
    easy, hard, out = tmp_path / "easy", tmp_path / "hard", tmp_path / "run"
    easy.write_text("1+1")
    hard.write_text("1+1*7")
    steps = []
    for step, (file, *numbers) in enumerate(
        [(easy, None, 1), (easy, None, 1), (hard, None, 1), (hard, 5, 1), (hard, 5, 2)]
    ):
        resume(out, RUN, force=False, validation=run_folder.validated_on([str(file)], *numbers))
        run_folder.record_score(out / "steps", step, 0.5)
        steps.append([*run_folder.scores(out / "steps")])
    assert steps == [[0], [0, 1], [2], [3], [4]]


def test_p08_pruning_never_takes_the_last_good_checkpoint(tmp_path: Path) -> None:
    for step in (4, 8, 12, 16):
        (tmp_path / f"global_step_{step}").mkdir()
    prune(tmp_path, keep=1)  # nothing is complete yet
    assert saved_steps(tmp_path) == [4, 8, 12, 16]
    (tmp_path / TRACKER).write_text("12")  # 16 is being written
    assert latest_step(tmp_path) == 12
    (tmp_path / "global_step_4" / run_folder.HASHES).touch()
    run_folder.record_score(tmp_path, 4, 1.0)
    prune(tmp_path, keep=1, keep_best=True)
    assert saved_steps(tmp_path) == [4, 12, 16]
    (tmp_path / "global_step_12").rmdir()  # deleted by a person, being damaged
    assert latest_step(tmp_path) == 4
