"""The forecast held against this machine, before every training starts."""

import os
from pathlib import Path
from typing import Any

from compositionality.gpus import count_gpus
from compositionality.rollout.forecast.machine import this_machine
from compositionality.rollout.forecast.need import DISK, Need, check_needs
from compositionality.rollout.forecast.shape import ModelShape, shape_of_model
from compositionality.train.forecast import single
from compositionality.train.forecast.single import Ranks
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.launch import RunSettings, world_size
from compositionality.train.settings import MeshSettings
from compositionality.train.sft_settings import SftSettings


def check_sft(settings: SftSettings) -> None:
    """UserError unless the single-file SFT fits this machine."""
    needs = single.sft_needs(settings, shape_of_model(settings.model.path), ranks_of(settings.run))
    _check(needs, Path(settings.trainer.output), settings.run.device)


def check_grpo(settings: GrpoSettings) -> None:
    """UserError unless the single-file GRPO fits this machine."""
    needs = single.grpo_needs(settings, shape_of_model(settings.model.path), ranks_of(settings.run))
    _check(needs, Path(settings.trainer.output), settings.run.device)


def check_pretraining(
    shape: ModelShape, mesh: MeshSettings, dtype: str, rows: int, length: int, out: Path, run: RunSettings
) -> None:
    """UserError unless pretraining on ``rows`` rows of ``length`` tokens a step fits this machine."""
    _check(single.pretraining_needs(shape, mesh, dtype, rows, length, ranks_of(run)), out, run.device)


def check_verl_sft(config: Any) -> None:
    """UserError unless verl's SFT fits this machine; of a Ray cluster elsewhere only the disk is known here."""
    from compositionality.train.forecast.of_verl import sft_needs

    _check(sft_needs(config, shape_of_model(config.run.model)), Path(config.run.output), config.run.device)


def check_verl_grpo(config: Any) -> None:
    """UserError unless verl's GRPO fits this machine; of a Ray cluster elsewhere only the disk is known here."""
    from compositionality.train.forecast.of_verl import grpo_needs

    _check(grpo_needs(config, shape_of_model(config.run.model)), Path(config.run.output), config.run.device)


def ranks_of(run: RunSettings) -> Ranks:
    """The processes of a run: those that torchrun has started, else those that it will start."""
    world = world_size(run)
    local = int(os.environ.get("LOCAL_WORLD_SIZE", world)) if "RANK" in os.environ else world
    return Ranks(local, max(1, world // local), gpu=run.device != "cpu" and count_gpus() > 0)


def _check(needs: list[Need], out: Path, device: str) -> None:
    """Without a GPU here, device=gpu means a cluster, or in a dry run another machine: only the disk is known."""
    machine = this_machine(out)
    elsewhere = device == "gpu" and machine.gpu_bytes is None
    check_needs([need for need in needs if need.place == DISK or not elsewhere], machine)
