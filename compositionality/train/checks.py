"""Checks of every training run: contradictions between settings, keys of the other engine, what is not installed."""

import os
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from compositionality.errors import MissingPackageError, UserError, check_installed
from compositionality.gpus import count_gpus
from compositionality.http_json import address_of
from compositionality.ranges import SINGLE, VERL
from compositionality.reward.shapes import Control
from compositionality.rollout.engines.vllm import check_temperature
from compositionality.train.grpo_settings import GAE, GrpoRolloutSettings, GrpoSettings
from compositionality.train.launch import world_size
from compositionality.train.run_folder import flatten
from compositionality.train.settings import (
    VERLS_LOGGERS,
    LoraSettings,
    MeshSettings,
    ModelSettings,
    RunSettings,
    marked_settings,
)
from compositionality.train.sft_settings import SftSettings, SftTrainerSettings
from compositionality.validation import check_ranges

SAMPLERS = {"single": ("builtin", "vllm", "server"), "verl": ("vllm", "sglang")}
INSTEAD_OF_VERL = {
    "trainer.export_dtype": "it writes float32",
    **{f"run.{key}": "start torchrun on every machine" for key in ("nodes", "node_rank", "master_addr", "master_port")},
    "run.ray_address": "only verl uses Ray",
    "run.stall_minutes": "only verl is watched",
}
"""Advice for keys that the single-file trainers lack, other than engine=verl."""
VERLS_SETUP = (
    "bash bash/setup.sh --full, or in a clone pip install -e '.[verl]' -c requirements-cpu.lock (or -gpu.lock)"
)
"""The command that installs verl."""


def check_settings(settings: GrpoSettings | SftSettings) -> None:
    """Raise UserError for settings that no run can have, with either engine."""
    check_ranges(settings)
    check_loggers(settings.trainer.logger, settings.engine)
    if not settings.data.train_files:
        raise UserError("data.train_files: give at least one problem file, of SFT one of rows")
    if settings.engine == "single":
        refuse_foreign_keys(settings, INSTEAD_OF_VERL)
        check_mesh(settings.mesh, settings.model.dtype, settings.run)
        check_lora(settings.model, settings.mesh)
    if isinstance(settings, GrpoSettings):
        _check_grpo(settings)
    else:
        _check_sft(settings.trainer)


def _check_sft(trainer: SftTrainerSettings) -> None:
    for keys in (("steps", "tokens", "steps_of", "tokens_of"), ("batch_tokens", "batch_of")):
        limits = [key for key in keys if getattr(trainer, key)]
        if len(limits) > 1:
            value = getattr(trainer, limits[1])
            raise UserError(f"trainer.{limits[1]}={value}: give trainer.{limits[0]} or this, not both")
    match = re.fullmatch("([1-9][0-9]*)/([1-9][0-9]*)", trainer.part)
    if not match or int(match[1]) > int(match[2]):
        raise UserError(f"trainer.part={trainer.part}: give K/N, the K-th of N parts")


def _check_grpo(settings: GrpoSettings) -> None:
    settings.reward.check()
    if settings.engine == "single" and settings.algorithm.advantage == GAE:
        raise UserError("algorithm.advantage=gae: engine=single has no critic; take engine=verl")
    if settings.rollout.engine not in SAMPLERS[settings.engine]:
        raise UserError(f"rollout.engine={settings.rollout.engine}: not one of {', '.join(SAMPLERS[settings.engine])}")
    _check_sampler(settings.rollout, settings.engine)
    data, algorithm, rollout = settings.data, settings.algorithm, settings.rollout
    if settings.trainer.epochs and data.train_limit:
        raise UserError("trainer.epochs: passes over whole files; with data.train_limit give trainer.steps")
    data.row_format()
    if data.prompts_per_step % algorithm.updates_per_step:
        raise UserError(
            f"algorithm.updates_per_step={algorithm.updates_per_step} does not divide "
            f"data.prompts_per_step={data.prompts_per_step}"
        )
    alone = algorithm.advantage in ("raft", "reinforce_plus_plus", GAE) and not algorithm.drops_equal_groups()
    if rollout.n < 2 and not alone:
        raise UserError(
            f"rollout.n={rollout.n}: a group of one completion has nothing to compare it with; take at least 2"
        )
    if algorithm.dynamic_sampling and not algorithm.drops_equal_groups():
        raise UserError("algorithm.dynamic_sampling=true replaces equal groups: drop_equal_groups=false contradicts it")
    if algorithm.kl != "none" and algorithm.kl_coef == 0:
        raise UserError(f"algorithm.kl={algorithm.kl}: give algorithm.kl_coef, the weight of that loss, or kl=none")
    if algorithm.entropy_like is not None and algorithm.entropy_coef <= 0:
        raise UserError(f"algorithm.entropy_coef={algorithm.entropy_coef}: entropy_like needs a positive one")
    if settings.reward.control != Control.NONE and settings.trainer.keep_best:
        raise UserError(
            f"reward.control={settings.reward.control}: the best checkpoint is chosen by right answers, on which "
            "nothing in a control may depend; set trainer.keep_best=false"
        )
    if algorithm.overlong_buffer > rollout.max_tokens:
        raise UserError(f"algorithm.overlong_buffer={algorithm.overlong_buffer} is more than rollout.max_tokens")


def _check_sampler(rollout: GrpoRolloutSettings, engine: str) -> None:
    """Raise UserError for a sampler that is not there, or that cannot sample so."""
    name = rollout.engine
    if name == "server":
        if not rollout.server_url:
            raise UserError("rollout.engine=server: give rollout.server_url, for example http://127.0.0.1:30000")
        address_of(rollout.server_url)
    if name == "sglang" and find_spec(name) is None:
        raise UserError("rollout.engine=sglang: the package sglang is not installed; install it, or take vllm")
    if name == "vllm" and engine == "single":
        if os.environ.get("COMPOSITIONALITY_DEVICE") != "gpu":  # else it is for another machine
            check_installed(name, "rollout.engine=vllm")
        check_temperature(rollout.temperature, "rollout.engine=builtin", "rollout.temperature")
        if not rollout.top_k and rollout.top_p == 1:
            return
        raise UserError(
            f"rollout.top_p={rollout.top_p:g} rollout.top_k={rollout.top_k}: vLLM only tells log-probs after "
            "truncation; use rollout.top_p=1 and rollout.top_k=0, or rollout.engine=builtin"
        )


def check_mesh(mesh: MeshSettings, dtype: str, run: RunSettings, key: str = "model.dtype") -> None:
    """Raise UserError for a mesh that the ranks cannot form, or not compute in ``dtype``: FSDP casts to bfloat16."""
    ranks = world_size(run)
    if ranks % mesh.tensor:
        raise UserError(
            f"mesh.tensor={mesh.tensor} does not divide the {ranks} processes; start a multiple of it (run.processes)"
        )
    if dtype != "bfloat16":
        return
    if not mesh.shard:
        raise UserError(f"{key}=bfloat16 needs mesh.shard=true; mesh.shard=false goes with {key}=float32")
    if ranks == 1 and not (run.device == "gpu" or (run.device == "auto" and count_gpus())):
        raise UserError(f"{key}=bfloat16 needs a GPU or several processes (run.processes); else take {key}=float32")


def check_lora(model: ModelSettings, mesh: MeshSettings) -> None:
    """Raise UserError for adapters beside layers that ranks share, which single-file trainers lack, or without peft."""
    if not model.lora.rank and model.lora != LoraSettings():
        raise UserError("model.lora.alpha, model.lora.targets: say something of adapters; give model.lora.rank too")
    if model.lora.rank and mesh.tensor > 1:
        raise UserError(f"model.lora.rank={model.lora.rank}: needs mesh.tensor=1, or engine=verl")
    if model.lora.rank:
        check_installed("peft", f"model.lora.rank={model.lora.rank}")


def check_loggers(names: Sequence[str], engine: str) -> None:
    """Raise MissingPackageError for a logger that cannot be used: its package is not installed, or verl, which has it.

    Without wandb a run goes on.
    """
    for name in names:
        what = f"trainer.logger={name}"
        if name in VERLS_LOGGERS and engine == "single" and find_spec("verl") is None:
            fix = f"run: {VERLS_SETUP}"
            raise MissingPackageError(f"{what}: engine=single logs there through verl, which is not installed; {fix}")
        if name not in ("file", "wandb", "console") and find_spec(name) is None:
            fix = f"{'bash bash/setup.sh --tensorboard, or ' if name == 'tensorboard' else ''}pip install {name}"
            raise MissingPackageError(f"{what}: the package {name} is not installed; run: {fix}")


def refuse_foreign_keys(settings: Any, instead: Mapping[str, str]) -> None:
    """Raise UserError for a key that the settings' ``engine`` does not have and that is not at its default.

    Those are the keys marked for the other engine, and those of ``instead``: key → what to do instead.
    """
    other = VERL if settings.engine == "single" else SINGLE
    defaults = {key: value for key, value, _ in marked_settings(type(settings)(engine=settings.engine))}
    for key, value, marks in marked_settings(settings):
        if (other in marks or key in instead) and value != defaults[key]:
            words = " ".join(f"{name}={part}" for name, part in flatten(value, key).items())
            what = instead.get(key, f"take engine={other.name}")
            raise UserError(f"{words}: engine={settings.engine} does not have it; {what}")
