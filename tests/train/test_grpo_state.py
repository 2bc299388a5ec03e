"""Order of the prompts, the stops of verl's trainers: all without Ray; checkpoints of RL: test_run_folder.py."""

import json
import resource
from collections import Counter, defaultdict
from types import SimpleNamespace

import pytest
import torch
from kills import killed_everywhere

from compositionality.errors import UserError
from compositionality.train.metrics import EVALUATED_TOKENS, SAMPLED
from compositionality.train.run_folder import folder, mark_complete, verify_checkpoint
from compositionality.train.verl.prompts import PromptStream

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


@pytest.fixture
def verl_trainer(tmp_path):
    """Our trainer before its third step, without Ray; six prompts have been taken."""
    trainer = pytest.importorskip("compositionality.train.verl.trainer", reason="verl is not installed")
    run = object.__new__(trainer.VerlGrpoTrainer)
    run.steps_folder, run.global_steps, run.train_dataloader = tmp_path / "steps", 3, PromptStream(ROWS, seed=1)
    run.train_dataloader.take(6)
    return run


@pytest.mark.full
@pytest.mark.parametrize(("name", "value"), [("actor/pg_loss", float("nan")), ("actor/grad_norm", float("inf"))])
def test_p08_nan_stops_with_one_line_and_nothing_is_saved(verl_trainer, monkeypatch, name, value):
    def update(self, batch, metrics):
        metrics |= {"actor/pg_loss": 0.1, "actor/grad_norm": 3.0, "perf/x": float("nan"), **batch}

    monkeypatch.setattr("verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync._update_actor", update)
    verl_trainer._update_actor({}, {})
    with pytest.raises(UserError, match=rf"step 3: {name} is {value}; the last checkpoint is kept"):
        verl_trainer._update_actor({name: value}, {})
    assert not verl_trainer.steps_folder.exists()


@pytest.mark.full
@pytest.mark.parametrize("saved", [True, False])
def test_p08_without_signal_the_state_before_the_step_is_kept_and_the_launcher_told(
    verl_trainer, tmp_path, monkeypatch, saved
):
    """The prompts that gave none are not asked again. The line is shown: test_sft_launch.py."""
    from compositionality.train.verl import grpo_trainer, launch
    from compositionality.train.verl.replay import NoSignalError

    def no_signal(*_):
        raise NoSignalError("step 3: no signal")

    monkeypatch.setattr("verl.trainer.ppo.v1.trainer_sync.PPOTrainerSync.step", no_signal)
    monkeypatch.setattr(grpo_trainer.VERL_TASK_RUNNER, "run", lambda *_: verl_trainer.step({}, {}))
    monkeypatch.setenv(launch.FAILURE_FILE, str(tmp_path / "failure.txt"))
    saves, steps = [], verl_trainer.steps_folder
    monkeypatch.setattr(type(verl_trainer), "_save_checkpoint", lambda run: saves.append(run.global_steps))
    checkpoint = folder(steps, 2)
    if saved:
        checkpoint.mkdir(parents=True)
        torch.save(PromptStream(ROWS, seed=1).state_dict(), checkpoint / "data.pt")
        mark_complete(steps, 2)
    with pytest.raises(NoSignalError):
        object.__new__(grpo_trainer.TaskRunner).run(None)
    assert (tmp_path / "failure.txt").read_text() == "step 3: no signal"
    assert (verl_trainer.global_steps, saves) == (2, [] if saved else [2])
    if saved:
        verify_checkpoint(checkpoint)
        assert torch.load(checkpoint / "data.pt")["position"] == 6


@pytest.mark.full
def test_p08_a_checkpoint_whose_data_position_is_replaced_is_complete_at_every_moment(verl_trainer):
    checkpoint = folder(verl_trainer.steps_folder, 2)
    checkpoint.mkdir(parents=True)
    torch.save(PromptStream(ROWS, seed=1).state_dict(), checkpoint / "data.pt")
    mark_complete(verl_trainer.steps_folder, 2)

    def replace(number):
        verl_trainer.global_steps = 3
        verl_trainer.train_dataloader.take(number)
        verl_trainer._save_state_before_step()

    for _ in killed_everywhere(replace):
        verify_checkpoint(checkpoint)


@pytest.mark.full
@pytest.mark.parametrize(
    ("advantages", "without"), [((0.0, 0.0), 1), ((-1e-7, 0.0), 1), ((0.0, 1.0), 0), ((-0.97, 0.0), 0)]
)
def test_a_step_is_without_signal_if_all_advantages_are_zero(verl_trainer, advantages, without):
    """Not if all rewards of each group are alike: raft's and REINFORCE++'s are not 0 then."""
    verl_trainer.row = dict(zip(("critic/advantages/min", "critic/advantages/max"), advantages, strict=True))
    assert verl_trainer._without_signal() == without


@pytest.mark.full
def test_validations_count_among_the_flops_that_of_the_last_step_too(verl_trainer):
    from omegaconf import OmegaConf

    asked = {
        "trainer": {"test_freq": 4},
        "actor_rollout_ref": {"rollout": {"val_kwargs": {"n": 1}}, "actor": {"ppo_epochs": 1}},
    }
    counted = []
    verl_trainer.config, verl_trainer.val_dataset = OmegaConf.create(asked), range(7)
    verl_trainer.row = {"perf/total_num_tokens": 100, SAMPLED: 10}
    verl_trainer.flops = SimpleNamespace(add=lambda given: counted.append(given[EVALUATED_TOKENS]) or defaultdict(int))
    verl_trainer.total_training_steps = 6
    for verl_trainer.global_steps in range(1, 7):
        verl_trainer._flops(10)
    assert counted == [0, 0, 0, 70, 0, 70]


@pytest.mark.full
def test_p08_a_checkpoint_of_sft_that_the_disk_does_not_hold_is_named_and_none_is_deleted(tmp_path, monkeypatch):
    """No file may be larger than 400 kB: the weights fit, Adam's moments do not."""
    from compositionality.train.verl import launch, sft_trainer

    def save(self, step):
        for name, numbers in (("model", 1000), ("optim", 1_000_000)):
            torch.save(torch.zeros(numbers), folder(tmp_path, step) / f"{name}.pt")

    monkeypatch.setattr(sft_trainer.CheckpointHandler, "save_checkpoint", save)
    monkeypatch.setenv(launch.FAILURE_FILE, str(tmp_path / "failure.txt"))
    checkpoints = object.__new__(sft_trainer.Checkpoints)
    checkpoints.default_local_dir, checkpoints.rank, checkpoints.keep = tmp_path, 0, 1
    for step in (3, 4):
        folder(tmp_path, step).mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, limits[1]))
    try:
        with pytest.raises(SystemExit) as ended:
            checkpoints.save_checkpoint(4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ended.value.code == UserError.exit_code
    assert "global_step_4: could not be written; is the disk full?" in (tmp_path / "failure.txt").read_text()
    assert folder(tmp_path, 3).is_dir()


def test_the_validation_score_weighs_levels_equally():
    from compositionality.train.grpo_report import validation_score

    metrics = {
        "val-core/string-heldout-level1/acc/mean@4": 1.0,
        "val-core/string-heldout-level2/acc/mean@4": 0.5,
        "val-core/string-heldout-level2/acc/best@4/mean": 0.9,
        "val-core/string-heldout-level2/acc/pass@4": 0.9,
        "val-aux/string-heldout-level2/wrong/mean@4": 0.5,
    }
    assert validation_score(metrics) == 0.75


def test_p07_orders_and_seeds_never_change():
    """A run that was begun with an earlier version goes on with the same prompts and random numbers."""
    from compositionality.seeds import request_seed, row_at
    from compositionality.train.verl.prompts import verl_seed

    assert [row_at(place, 10, 1) for place in range(12)] == [8, 4, 7, 0, 1, 2, 5, 9, 6, 3, 7, 2]
    assert request_seed(1, 5, 3) == 801452190
    assert verl_seed(1, "000000000005", [{"role": "user", "content": "x"}], 3) == 7693563426076433714
