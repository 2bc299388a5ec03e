"""P16: nothing of a checkpoint is run when it is read."""

import os
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from compositionality.errors import UserError
from compositionality.rollout.engines.builtin import read_weights
from compositionality.train.checkpoint import CheckpointPlanner, CheckpointReader, load_state


class Attack:
    """Unpickled, it makes a folder."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.trace),)


def save(folder: Path, state: dict[str, Any]) -> Path:
    import torch.distributed.checkpoint as dcp

    dcp.save(state, checkpoint_id=folder)
    return folder


def load(folder: Path, state: dict[str, Any]) -> dict[str, Any]:
    import torch.distributed.checkpoint as dcp

    dcp.load(state, storage_reader=CheckpointReader(folder), planner=CheckpointPlanner())
    return state


STATE = {"weight": torch.arange(4.0), "count": 3, "rates": {"lr": 1e-3, "betas": (0.9, 0.99)}}
EMPTY = {"weight": torch.zeros(4), "count": 0, "rates": {"lr": 0.0, "betas": (0.0, 0.0)}}


def test_tensors_and_plain_data_are_read(tmp_path: Path) -> None:
    found = load(save(tmp_path / "checkpoint", STATE), dict(EMPTY))
    assert torch.equal(found["weight"], STATE["weight"])
    assert (found["count"], found["rates"]) == (STATE["count"], STATE["rates"])


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
    with pytest.raises(UserError, match="holds more than tensors; use safetensors"):
        list(read_weights(tmp_path))
    assert not (tmp_path / "trace").exists()
