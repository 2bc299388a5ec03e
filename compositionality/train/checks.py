"""What no training run can have, whichever it is: contradictions between settings, and what is not installed."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

from compositionality.errors import MissingPackageError, UserError, check_installed
from compositionality.gpus import count_gpus
from compositionality.train.launch import world_size
from compositionality.train.run_folder import flatten
from compositionality.train.settings import VERLS_LOGGERS, LoraSettings, MeshSettings, ModelSettings, RunSettings

NEEDS_VERL = {
    "trainer.export_dtype": "it writes float32",
    **{f"run.{key}": "start torchrun on every machine" for key in ("nodes", "node_rank", "master_addr", "master_port")},
    "run.ray_address": "only verl uses Ray",
    "run.stall_minutes": "only verl is watched",
    "verl": "take engine=verl",
}
"""Keys that the single-file trainers do not have, and what to do instead."""
VERLS_SETUP = (
    "bash bash/setup.sh --full, or in a clone pip install -e '.[verl]' -c requirements-cpu.lock (or -gpu.lock)"
)
"""What installs verl."""


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


def refuse_foreign_keys(settings: Any, keys: Mapping[str, str]) -> None:
    """Raise UserError for a key of ``keys`` (key → what to do instead) that is not at its default.

    ``settings`` is a dataclass with a field ``engine``; the keys are those that this engine does not have.
    """
    default = type(settings)(engine=settings.engine)
    for key, instead in keys.items():
        value = attrgetter(key)(settings)
        if value != attrgetter(key)(default):
            words = " ".join(f"{name}={part}" for name, part in flatten(value, key).items())
            raise UserError(f"{words}: engine={settings.engine} does not have it; {instead}")
