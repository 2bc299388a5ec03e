"""Checkpoints: nothing of one is run when it is read (P16); Ctrl-C waits until one is whole; complete, it stays so."""

import os
import pickle
import re
import signal
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from assets import Attack, random_model
from kills import killed_everywhere

from compositionality.errors import UserError
from compositionality.rollout.engines.local import read_weights
from compositionality.train.checkpoint import (
    CheckpointPlanner,
    CheckpointReader,
    interrupt_afterwards,
    load_checkpoint,
    save_checkpoint,
)
from compositionality.train.policy import Policy, new_optimizer
from compositionality.train.run_folder import complete_steps, folder, repair
from compositionality.train.settings import OptimSettings
from compositionality.train.verl.export import load_state


def test_p07_saved_again_a_checkpoint_is_complete_at_every_moment(tmp_path: Path) -> None:
    """After prompts without signal: the weights are the same, the state says which prompts are used up."""
    policy, tokenizer = Policy(random_model("Llama", vocab_size=37)), SimpleNamespace(save_pretrained=lambda _: None)
    optimizer = new_optimizer(policy, OptimSettings(lr=1e-3))

    def save_at(position: int) -> None:
        save_checkpoint(tmp_path, 1, policy, optimizer, tokenizer, state={"position": position}, row={"step": 1})

    save_at(-1)
    for position in killed_everywhere(save_at):
        repair(tmp_path)
        assert complete_steps(tmp_path) == [1]
        assert load_checkpoint(folder(tmp_path, 1), policy, optimizer)["position"] in range(-1, position + 1)
    assert load_checkpoint(folder(tmp_path, 1), policy, optimizer) == {"position": position + 1}
    assert position > 3


def test_a_checkpoint_before_the_first_update_changes_none(tmp_path: Path) -> None:
    """Torch fills an empty optimizer's state by a step of zero gradients, which Adam counts."""
    tokenizer, start = SimpleNamespace(save_pretrained=lambda _: None), Policy(random_model("Llama", vocab_size=37))
    ends = []
    for saved in (False, True):
        policy = deepcopy(start)
        optimizer = new_optimizer(policy, OptimSettings(lr=1e-3))
        if saved:
            save_checkpoint(tmp_path, 1, policy, optimizer, tokenizer, state={}, row={"step": 1})
            load_checkpoint(folder(tmp_path, 1), policy, optimizer)
        for _ in range(3):
            for weight in policy.parameters():
                weight.grad = torch.ones_like(weight)
            optimizer.step()
        ends.append(torch.cat([weight.detach().flatten() for weight in policy.parameters()]))
    assert torch.equal(*ends)


def save(target: Path, state: dict[str, Any]) -> Path:
    import torch.distributed.checkpoint as dcp

    dcp.save(state, checkpoint_id=target)
    return target


def load(folder: Path, state: dict[str, Any]) -> dict[str, Any]:
    import torch.distributed.checkpoint as dcp

    dcp.load(state, storage_reader=CheckpointReader(folder), planner=CheckpointPlanner())
    return state


STATE = {"weight": torch.arange(4.0), "count": 3, "rates": {"lr": 1e-3, "betas": (0.9, 0.99)}}
EMPTY = {"weight": torch.zeros(4), "count": 0, "rates": {"lr": 0.0, "betas": (0.0, 0.0)}}


def test_p16_the_description_of_a_checkpoint_runs_nothing(tmp_path: Path) -> None:
    folder = save(tmp_path / "checkpoint", STATE)
    (folder / ".metadata").write_bytes(pickle.dumps(Attack(tmp_path / "trace")))
    with pytest.raises(BaseException, match="no part of a checkpoint"):
        load(folder, dict(EMPTY))
    assert not (tmp_path / "trace").exists()


def test_p16_an_entry_of_a_checkpoint_runs_nothing(tmp_path: Path) -> None:
    folder = save(tmp_path / "checkpoint", {**STATE, "count": Attack(tmp_path / "trace")})
    with pytest.raises(BaseException, match=r"[Ww]eights.only"):
        load(folder, dict(EMPTY))
    assert not (tmp_path / "trace").exists()


def test_p16_files_of_weights_run_nothing(tmp_path: Path) -> None:
    for name in ("shard.pt", "pytorch_model.bin"):
        torch.save({"weight": Attack(tmp_path / "trace")}, tmp_path / name)
    with pytest.raises(UserError, match=re.escape(f"{tmp_path / 'shard.pt'}: holds more than tensors")):
        load_state(tmp_path / "shard.pt")
    with pytest.raises(UserError, match="contains more than tensors; use safetensors"):
        list(read_weights(tmp_path))
    assert not (tmp_path / "trace").exists()


@pytest.fixture
def as_in_a_terminal() -> Iterator[None]:
    """A shell starts what it puts in the background without SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@interrupt_afterwards()
def interrupted(done: list[int], times: int) -> None:
    """A library that makes an error of its own of a KeyboardInterrupt."""
    try:
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt as interrupt:
        raise RuntimeError("checkpoint failed") from interrupt
    done.append(times)


@pytest.mark.usefixtures("as_in_a_terminal")
@pytest.mark.parametrize(("times", "done"), [(1, [1]), (2, [])])
def test_one_waits_for_the_end_and_a_second_does_not(times: int, done: list[int]) -> None:
    found: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(found, times)
    assert found == done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("as_in_a_terminal")
def test_without_one_nothing_happens() -> None:
    found: list[int] = []
    interrupted(found, 0)
    assert found == [0]
    with pytest.raises(ValueError, match="other"), interrupt_afterwards():
        raise ValueError("other")
