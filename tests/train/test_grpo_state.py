"""Order of the prompts, complete checkpoints, the stops of the trainer: all without Ray."""

import json
from collections import Counter

import pytest

from compositionality.errors import UserError
from compositionality.train import run_folder as checkpoints
from compositionality.train.prompts import PromptStream
from compositionality.train.run_folder import TRACKER, latest_step, prune, saved_steps

ROWS = [{"row": number} for number in range(10)]


def rows(stream, count):
    return [row["row"] for row in stream.take(count)]


def test_every_pass_asks_each_prompt_once_in_an_order_of_its_own():
    stream = PromptStream(ROWS, seed=1)
    passes = [rows(stream, 10) for _ in range(3)]
    assert all(sorted(order) == list(range(10)) for order in passes)
    assert passes[0] != passes[1] != passes[2]
    assert rows(PromptStream(ROWS, seed=2), 10) != passes[0]
    assert rows(PromptStream(ROWS, seed=1, shuffle=False), 12) == [*range(10), 0, 1]


@pytest.mark.parametrize("cut", [0, 3, 9, 10, 11, 20])
def test_p07_a_stream_goes_on_where_it_was_left(cut):
    whole = PromptStream(ROWS, seed=1)
    expected = [(row["row"], row["uid"]) for row in whole.take(25)]
    first = PromptStream(ROWS, seed=1)
    begun = first.take(cut)
    second = PromptStream(ROWS, seed=1)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert [(row["row"], row["uid"]) for row in begun + second.take(25 - cut)] == expected


def test_names_of_prompts_sort_as_they_were_taken():
    names = [row["uid"] for row in PromptStream(ROWS, seed=1).take(120)]
    assert names == sorted(names)
    assert max(Counter(names).values()) == 1
    assert not any("_" in name for name in names)


def save(steps, step, *, complete=True):
    path = checkpoints.folder(steps, step) / "actor"
    path.mkdir(parents=True)
    (path / "model.pt").write_text(f"weights {step}")
    (steps / TRACKER).write_text(str(step))
    if complete:
        checkpoints.mark_complete(steps, step)


def test_p08_a_half_written_checkpoint_is_never_used(tmp_path):
    save(tmp_path, 2)
    save(tmp_path, 4, complete=False)
    checkpoints.repair(tmp_path)
    assert (latest_step(tmp_path), saved_steps(tmp_path)) == (2, [2])


def test_p08_an_empty_tracker_is_repaired(tmp_path):
    save(tmp_path, 2)
    (tmp_path / TRACKER).write_text("")  # verl was killed between opening and writing it
    checkpoints.repair(tmp_path)
    assert latest_step(tmp_path) == 2


def test_p08_an_altered_or_missing_file_is_named(tmp_path):
    save(tmp_path, 2)
    path = checkpoints.folder(tmp_path, 2) / "actor" / "model.pt"
    path.write_text("weights 3")
    with pytest.raises(UserError, match=r"model.pt: missing or altered"):
        checkpoints.repair(tmp_path)
    path.unlink()
    with pytest.raises(UserError, match=r"model.pt: missing or altered"):
        checkpoints.repair(tmp_path)


def test_repair_of_nothing_is_nothing(tmp_path):
    checkpoints.repair(tmp_path / "steps")
    assert latest_step(tmp_path / "steps") == 0


def test_the_best_checkpoint_outlives_the_last_ones(tmp_path):
    for step, score in ((2, 0.5), (4, 0.9), (6, 0.9), (8, 0.1), (10, 0.2)):
        save(tmp_path, step)
        checkpoints.record_score(tmp_path, step, score)
        prune(tmp_path, 2, keep_best=True)
    assert saved_steps(tmp_path) == [4, 8, 10]
    assert checkpoints.best_step(tmp_path) == 4
    checkpoints.record_score(tmp_path, 12, 1.0)  # validated, not saved
    assert checkpoints.best_step(tmp_path) == 4


def test_all_checkpoints_are_kept(tmp_path):
    for step in (2, 4, 6):
        save(tmp_path, step)
        prune(tmp_path, "all", keep_best=True)
    assert saved_steps(tmp_path) == [2, 4, 6]


@pytest.mark.full
@pytest.mark.parametrize(("name", "value"), [("actor/pg_loss", float("nan")), ("actor/grad_norm", float("inf"))])
def test_nan_stops_with_one_line(name, value):
    from compositionality.train.verl.trainer import refuse_nan

    refuse_nan({"actor/pg_loss": 0.1, "actor/grad_norm": 3.0, "perf/x": float("nan")}, 3)
    with pytest.raises(UserError, match=rf"step 3: {name} is {value}; the last checkpoint is kept") as error:
        refuse_nan({name: value}, 3)
    assert "\n" not in str(error.value)


@pytest.mark.full
def test_the_validation_score_weighs_levels_equally():
    from compositionality.train.verl.trainer import validation_score

    metrics = {
        "val-core/string-heldout-level1/acc/mean@4": 1.0,
        "val-core/string-heldout-level2/acc/mean@4": 0.5,
        "val-core/string-heldout-level2/acc/best@4/mean": 0.9,
        "val-aux/string-heldout-level2/wrong/mean@4": 0.5,
    }
    assert validation_score(metrics) == 0.75


def test_p07_orders_and_seeds_never_change():
    """A run that was begun with an earlier version goes on with the same prompts and random numbers."""
    from compositionality.data.problems import row_at
    from compositionality.rollout.engines.base import request_seed
    from compositionality.train.prompts import verl_seed

    assert [row_at(place, 10, 1) for place in range(12)] == [8, 4, 7, 0, 1, 2, 5, 9, 6, 3, 7, 2]
    assert request_seed(1, 5, 3) == 801452190
    assert verl_seed(1, "000000000005", [{"role": "user", "content": "x"}], 3) == 7693563426076433714
