"""Settings that every training program has; the comment after a field is its phrase in ``--help``."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any

from compositionality.errors import UserError
from compositionality.ranges import (
    EFFECT,
    NO_EFFECT,
    REQUIRED,
    CountOrAll,
    FractionBelowOne,
    Mark,
    NoEffect,
    NonEmptyStr,
    NonNegativeFloat,
    NonNegativeInt,
    OneOf,
    OnlySingle,
    OnlyVerl,
    Port,
    PositiveFloat,
    PositiveInt,
    marks_of,
)
from compositionality.train.run_folder import flatten

ENGINES = ("single", "verl")
Trainer = Annotated[str, OneOf(ENGINES)]
FloatType = Annotated[str, OneOf(("float32", "bfloat16"))]
Attention = Annotated[str, OneOf(("sdpa", "flash_attention_2", "eager", "auto"))]
VERLS_LOGGERS = ("console", "mlflow", "swanlab", "trackio")
Logger = Annotated[str, OneOf(("file", "tensorboard", "wandb", *VERLS_LOGGERS))]
Files = NoEffect[list[str]]
"""Problem files; those to train on are inputs of the recipe, by content."""
VerlsKeys = OnlyVerl[NoEffect[dict[str, Any]]]


@dataclass
class LoraSettings:
    """Low-rank adapters that are trained in place of all weights; models that are written have them merged."""

    rank: NonNegativeInt = 0  # of an adapter; 0: no LoRA
    alpha: PositiveInt = 32  # an adapter's change is multiplied by alpha / rank
    targets: list[str] = field(default_factory=list)  # layers, as q_proj; empty: all linear ones but the head


@dataclass
class ModelSettings:
    """Where to start from, and how to compute. Weights and Adam's moments are float32 in any case."""

    path: NoEffect[str] = REQUIRED  # folder or Hub id; single: Llama, Qwen2 or Qwen3; with a chat template
    dtype: FloatType = "float32"  # of the computation; bfloat16 on GPUs
    attention: Attention = "sdpa"  # auto: flash_attention_2 where a GPU and flash-attn are, else sdpa
    activation_checkpointing: NoEffect[bool] = False  # compute activations twice instead of keeping them
    lora: LoraSettings = field(default_factory=LoraSettings)  # adapters in place of all weights


@dataclass
class MeshSettings:
    """The division of the work among processes."""

    tensor: PositiveInt = 1  # ranks that share a layer (it must divide the heads and the KV heads); with verl: vLLM's
    shard: OnlySingle[bool] = True  # the other ranks share weights and Adam (FSDP2); false is faster for tiny models


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
class TrainerSettings:
    """The run: its folder, and what does not depend on how it learns."""

    output: NonEmptyStr = REQUIRED  # run folder: final/ is the trained model, best/ of RL the best by validation
    keep: CountOrAll = 2  # checkpoints to keep, the last so many, or all
    micro_batch_tokens: PositiveInt = 16384  # tokens in one forward pass of a process, padding included
    threads: PositiveInt = 1  # of each process, on a CPU
    logger: list[Logger] = field(default_factory=list)  # tensorboard, wandb, verl's others; metrics.jsonl always
    export_dtype: OnlyVerl[FloatType] = "float32"  # of final/ and best/; float32 is exact


@dataclass
class RunSettings:
    """Where a run computes. ``processes`` are ranks that share its data (or, with ``mesh.tensor``, its layers)."""

    device: Annotated[str, OneOf(("auto", "cpu", "gpu"))] = "auto"  # auto: gpu where one is visible
    processes: PositiveInt | None = None  # on this machine; null: one for each GPU, one on a CPU, or those of torchrun


@dataclass
class ClusterSettings(RunSettings):
    """Where a run computes, if need be on several machines."""

    nodes: OnlyVerl[PositiveInt | None] = None  # machines; null: $NNODES, or 1 (single: start torchrun on each)
    node_rank: OnlyVerl[NonNegativeInt] = 0  # SFT: number of this machine
    master_addr: OnlyVerl[str] = "localhost"  # SFT: the machine with node_rank 0
    master_port: OnlyVerl[Port] = 29500  # SFT: a free port of it
    ray_address: OnlyVerl[str | None] = None  # host:port of a Ray cluster; null: $RAY_ADDRESS, or this machine
    stall_minutes: OnlyVerl[PositiveFloat | None] = None  # end a run without a sign of life; null: by device


def marked_settings(
    settings: Any, prefix: str = "", outer: tuple[Mark, ...] = ()
) -> Iterator[tuple[str, Any, tuple[Mark, ...]]]:
    """Yield dotted key, value and marks of every setting; those of the sections that it is in come first."""
    own = marks_of(type(settings))
    for entry in fields(settings):
        key, value, marks = f"{prefix}{entry.name}", getattr(settings, entry.name), (*outer, *own[entry.name])
        if is_dataclass(value):
            yield from marked_settings(value, f"{key}.", marks)
        else:
            yield key, value, marks


def result_settings(settings: Any) -> dict[str, Any]:
    """Return the settings on which the result depends, flat; of ``NoEffect`` and ``Effect`` the innermost decides."""
    values: dict[str, Any] = {}
    for key, value, marks in marked_settings(settings):
        if [mark for mark in marks if mark in (EFFECT, NO_EFFECT)][-1:] != [NO_EFFECT]:
            values |= flatten(value, key)
    return values


def check_split(config: Mapping[str, Any], ranks: int) -> None:
    """Raise UserError unless the ranks divide the heads, the KV heads and the MLP's width."""
    for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size"):
        if (config.get(name) or 0) % ranks:
            raise UserError(f"mesh.tensor={ranks} does not divide {name}={config[name]} of the model")
