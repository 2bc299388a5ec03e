"""Settings that every training program has; the comment after a field is its phrase in ``--help``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from operator import attrgetter
from typing import Annotated, Any

from compositionality.errors import MissingPackageError, UserError, check_installed
from compositionality.gpus import count_gpus
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
from compositionality.train.launch import RunSettings, world_size
from compositionality.train.run_folder import flatten
from compositionality.validation import keys_of

ENGINES = ("single", "verl")
Trainer = Annotated[str, OneOf(ENGINES)]
FloatType = Annotated[str, OneOf(("float32", "bfloat16"))]
Attention = Annotated[str, OneOf(("sdpa", "flash_attention_2", "eager", "auto"))]
VERLS_LOGGERS = ("console", "mlflow", "swanlab", "trackio")
Logger = Annotated[str, OneOf(("file", "tensorboard", "wandb", *VERLS_LOGGERS))]
NEEDS_VERL = {
    "trainer.export_dtype": "it writes float32",
    **{f"run.{key}": "start torchrun on every machine" for key in ("nodes", "node_rank", "master_addr", "master_port")},
    "run.ray_address": "only verl uses Ray",
    "run.stall_minutes": "only verl is watched",
    "verl": "take engine=verl",
}
"""Keys that the single-file trainers do not have, and what to do instead."""
NOT_THE_RESULT = (
    *("engine", "run.", "verl", "force", "dry_run", "model.path", "model.activation_checkpointing"),
    *("mesh.", "data.train_files", "data.val_files", "trainer."),
)
"""Begins the keys on which the weights that a single-file trainer makes do not depend."""
VERLS_SETUP = (
    "bash bash/setup.sh --full, or in a clone pip install -e '.[verl]' -c requirements-cpu.lock (or -gpu.lock)"
)
"""What installs verl."""
TRL_NAMES: dict[str, tuple[str, ...]] = {
    "adam_beta1": ("optim.beta1",),
    "adam_beta2": ("optim.beta2",),
    "attn_implementation": ("model.attention",),
    "beta": ("algorithm.kl_coef",),
    "bf16": ("model.dtype",),
    "completion_only_loss": ("data.prompt_loss",),
    "dataset_name": ("data.train_files",),
    "dataset_text_field": ("data.messages_key",),
    "dtype": ("model.dtype",),
    "eval_dataset": ("data.val_files",),
    "epsilon": ("algorithm.clip_low",),
    "epsilon_high": ("algorithm.clip_high",),
    "eval_steps": ("trainer.eval_every",),
    "eval_strategy": ("trainer.eval_every",),
    "gradient_accumulation_steps": ("trainer.micro_batch_tokens",),
    "gradient_checkpointing": ("model.activation_checkpointing",),
    "learning_rate": ("optim.lr",),
    "log_completions": ("trainer.samples_every",),
    "logging_steps": ("trainer.log_every",),
    "lora_alpha": ("model.lora.alpha",),
    "lora_r": ("model.lora.rank",),
    "lora_target_modules": ("model.lora.targets",),
    "loss_type": ("algorithm.loss_aggregation",),
    "lr_scheduler_type": ("optim.decay_power",),
    "max_completion_length": ("rollout.max_tokens",),
    "max_length": ("data.max_length",),
    "max_prompt_length": ("data.max_prompt_tokens",),
    "max_seq_length": ("data.max_length",),
    "max_steps": ("trainer.steps",),
    "model_name_or_path": ("model.path",),
    "num_generations": ("rollout.n",),
    "num_iterations": ("algorithm.updates_per_step",),
    "num_train_epochs": ("trainer.epochs",),
    "output_dir": ("trainer.output",),
    "per_device_train_batch_size": ("data.prompts_per_step", "trainer.batch_rows"),
    "report_to": ("trainer.logger",),
    "reward_funcs": ("reward.function",),
    "run_name": ("trainer.output",),
    "save_steps": ("trainer.save_every",),
    "save_strategy": ("trainer.save_every",),
    "save_total_limit": ("trainer.keep",),
    "scale_rewards": ("algorithm.advantage",),
    "seed": ("data.seed",),
    "shuffle_dataset": ("data.shuffle",),
    "temperature": ("rollout.temperature",),
    "train_dataset": ("data.train_files",),
    "torch_dtype": ("model.dtype",),
    "use_peft": ("model.lora.rank",),
    "use_vllm": ("rollout.engine",),
    "vllm_gpu_memory_utilization": ("rollout.gpu_memory",),
    "vllm_importance_sampling_cap": ("algorithm.importance_cap",),
    "vllm_server_base_url": ("rollout.server_url",),
    "warmup_ratio": ("optim.warmup_steps",),
    "warmup_steps": ("optim.warmup_steps",),
    "weight_decay": ("optim.weight_decay",),
}
"""TRL's name (GRPOConfig, SFTConfig, ModelConfig) → ours, the first that the settings have: of RL, of SFT."""


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
class ClusterSettings(RunSettings):
    """Where a run computes, if need be on several machines."""

    nodes: PositiveInt | None = None  # verl: machines; null: $NNODES, or 1 (single: start torchrun on each)
    node_rank: NonNegativeInt = 0  # verl, SFT: number of this machine
    master_addr: str = "localhost"  # verl, SFT: the machine with node_rank 0
    master_port: Port = 29500  # verl, SFT: a free port of it
    ray_address: str | None = None  # verl: host:port of a Ray cluster; null: $RAY_ADDRESS, or this machine
    stall_minutes: PositiveFloat | None = None  # verl: end a run without a sign of life; null: by device


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


def check_split(config: Mapping[str, Any], ranks: int) -> None:
    """Raise UserError unless the ranks divide the heads, the KV heads and the MLP's width."""
    for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size"):
        if (config.get(name) or 0) % ranks:
            raise UserError(f"mesh.tensor={ranks} does not divide {name}={config[name]} of the model")


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
            fix = (
                "bash bash/setup.sh --tensorboard, or pip install tensorboard"
                if name == "tensorboard"
                else f"pip install {name}"
            )
            raise MissingPackageError(f"{what}: the package {name} is not installed; run: {fix}")


def refuse_foreign_keys(settings: Any, keys: Mapping[str, str]) -> None:
    """Raise UserError for a key of ``keys`` (key → what to do instead) that is not at its default.

    ``settings`` is a dataclass with a field ``engine``; the keys are those that this engine does not have.
    """
    default = type(settings)(engine=settings.engine)
    for key, instead in keys.items():
        value = attrgetter(key)(settings)
        if value != attrgetter(key)(default):
            given = (
                {f"{key}.{name}": one for name, one in flatten(value).items()}
                if isinstance(value, dict)
                else {key: value}
            )
            words = " ".join(f"{name}={one}" for name, one in given.items())
            raise UserError(f"{words}: engine={settings.engine} does not have it; {instead}")


def answer_trl(schema: type[Any], key: str) -> str:
    """Return ``here KEY`` for a ``key`` of TRL's that ``schema`` has by another name; else nothing."""
    keys = set(keys_of(schema))
    return next((f"here {ours}" for ours in TRL_NAMES.get(key, ()) if ours in keys), "")
