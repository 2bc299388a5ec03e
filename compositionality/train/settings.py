"""Settings that every training program has; the comment after a field is its phrase in ``--help``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from compositionality.errors import UserError
from compositionality.ranges import (
    REQUIRED,
    FractionBelowOne,
    NonNegativeFloat,
    NonNegativeInt,
    OneOf,
    Port,
    PositiveFloat,
    PositiveInt,
)

Trainer = Annotated[str, OneOf(("single", "verl"))]
FloatType = Annotated[str, OneOf(("float32", "bfloat16"))]
Attention = Annotated[str, OneOf(("sdpa", "flash_attention_2", "eager", "auto"))]
VERLS_LOGGERS = ("console", "mlflow", "swanlab", "trackio")
Logger = Annotated[str, OneOf(("file", "tensorboard", "wandb", *VERLS_LOGGERS))]
NOT_THE_RESULT = (
    *("engine", "run.", "verl", "force", "dry_run", "model.path", "model.activation_checkpointing"),
    *("mesh.", "data.train_files", "data.val_files", "trainer."),
)
"""Begins the keys on which the weights that a single-file trainer makes do not depend."""


@dataclass
class LoraSettings:
    """Low-rank adapters that are trained in place of all weights; models that are written have them merged."""

    rank: NonNegativeInt = 0  # of an adapter; 0: no LoRA
    alpha: PositiveInt = 32  # an adapter's change is multiplied by alpha / rank
    targets: list[str] = field(default_factory=list)  # layers, as q_proj; empty: all linear ones but the head


@dataclass
class ModelSettings:
    """Where to start from, and how to compute. Weights and Adam's moments are float32 in any case."""

    path: str = REQUIRED  # folder or Hub id; single: Llama, Qwen2 or Qwen3; with a chat template
    dtype: FloatType = "float32"  # of the computation; bfloat16 on GPUs
    attention: Attention = "sdpa"  # auto: flash_attention_2 where a GPU and flash-attn are, else sdpa
    activation_checkpointing: bool = False  # compute activations twice instead of keeping them
    lora: LoraSettings = field(default_factory=LoraSettings)  # adapters in place of all weights


@dataclass
class MeshSettings:
    """How the processes share the work."""

    tensor: PositiveInt = 1  # ranks that share a layer (it must divide the heads and the KV heads); with verl: vLLM's
    shard: bool = True  # the other ranks share weights and Adam (FSDP2); false is faster for tiny models


@dataclass
class OptimSettings:
    """AdamW. The rate rises over ``warmup_steps``, then falls as (1 - step/steps)^``decay_power``."""

    lr: PositiveFloat = REQUIRED  # highest learning rate
    beta1: FractionBelowOne = 0.9  # of AdamW
    beta2: FractionBelowOne = 0.999  # of AdamW
    weight_decay: NonNegativeFloat = 0.01  # of AdamW
    warmup_steps: NonNegativeInt = 0  # steps (of SFT: updates) over which the rate rises
    decay_power: NonNegativeFloat = 0.0  # the rate falls as (1 - step/steps)^decay_power; 0: it stays
    max_grad_norm: PositiveFloat = 1.0  # gradients are scaled down to this norm


@dataclass
class RunSettings:
    """Where a run computes. ``processes`` are ranks that share its data (or, with ``mesh.tensor``, its layers)."""

    device: Annotated[str, OneOf(("auto", "cpu", "gpu"))] = "auto"  # auto: gpu where one is visible
    processes: PositiveInt | None = None  # on this machine; null: one for each GPU, one on a CPU, or those of torchrun


@dataclass
class ClusterSettings(RunSettings):
    """Where a run computes, if need be on several machines."""

    nodes: PositiveInt | None = None  # verl: machines; null: $NNODES, or 1 (single: start torchrun on each)
    node_rank: NonNegativeInt = 0  # verl, SFT: number of this machine
    master_addr: str = "localhost"  # verl, SFT: the machine with node_rank 0
    master_port: Port = 29500  # verl, SFT: a free port of it
    ray_address: str | None = None  # verl: host:port of a Ray cluster; null: $RAY_ADDRESS, or this machine
    stall_minutes: PositiveFloat | None = None  # verl: end a run without a sign of life; null: by device


def check_split(config: Mapping[str, Any], ranks: int) -> None:
    """Raise UserError unless the ranks divide the heads, the KV heads and the MLP's width."""
    for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size"):
        if (config.get(name) or 0) % ranks:
            raise UserError(f"mesh.tensor={ranks} does not divide {name}={config[name]} of the model")
