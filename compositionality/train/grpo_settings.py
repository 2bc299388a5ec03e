"""The settings of grpo.py, and what no run can have; ``config/single/grpo.yaml`` documents every key."""

from dataclasses import asdict, dataclass, field
from pathlib import Path

from omegaconf import MISSING

from compositionality.data.artefact import Recipe
from compositionality.errors import UserError
from compositionality.reward.shapes import Shape
from compositionality.train.common.run_folder import flatten


@dataclass
class ModelSettings:
    """Where to start from. ``dtype`` of the computation; the weights that are trained are float32 in any case."""

    path: str = MISSING
    dtype: str = "float32"
    attention: str = "sdpa"
    activation_checkpointing: bool = False


@dataclass
class MeshSettings:
    """``tensor`` ranks share a layer; the others share the data. ``shard``: the latter also share weights (FSDP2)."""

    tensor: int = 1
    shard: bool = True


@dataclass
class OptimSettings:
    """AdamW. The rate rises over ``warmup_steps``, then falls as (1 - step/steps)^``decay_power`` (0: constant)."""

    lr: float = MISSING
    beta1: float = 0.9
    beta2: float = 0.98
    weight_decay: float = 0.01
    warmup_steps: int = 0
    decay_power: float = 0.0
    max_grad_norm: float = 1.0


@dataclass
class GrpoDataSettings:
    """Problem files and the order of their rows. ``prompts_per_step`` groups reach an update."""

    train_files: list[str] = MISSING
    val_files: list[str] = field(default_factory=list)
    seed: int = 1
    prompts_per_step: int = 64
    max_prompt_tokens: int = 1024


@dataclass
class RolloutSettings:
    """How answers are drawn: ``n`` to a prompt, of at most ``max_tokens`` tokens, by the engine named."""

    engine: str = "builtin"
    n: int = 16
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 1024
    seed: int = 1
    max_rows: int = 256
    server_url: str | None = None
    bucket_mb: int = 512
    gpu_memory: float = 0.4


@dataclass
class AlgorithmSettings:
    """What is maximised, and which groups are used for it; README.md has the formulas."""

    advantage: str = "grpo"
    loss_aggregation: str = "token"
    clip_low: float = 0.2
    clip_high: float = 0.2
    updates_per_step: int = 1
    kl: str = "none"
    kl_coef: float = 0.0
    entropy_coef: float = 0.0
    importance_cap: float | None = None
    dynamic_sampling: bool = False
    max_generation_batches: int = 10
    drop_equal_groups: bool = True
    overlong_buffer: int = 0
    overlong_penalty: float = 1.0


@dataclass
class RewardSettings:
    """Verdict to reward (a ``reward.Shape``), ``shuffle`` (a control: the rewards of a step's answers dealt out at
    random), seconds for one verdict, share of verdicts that may fail."""

    shape: str = "binary"
    shuffle: bool = False
    judge_seconds: float = 10.0
    max_error_rate: float = 0.01


@dataclass
class GrpoTrainerSettings:
    """The run: its folder, its length in updates, and what is written how often (in steps; 0: never)."""

    output: str = MISSING
    steps: int = 100
    save_every: int = 25
    eval_every: int = 25
    eval_limit: int | None = None
    keep: int = 2
    keep_best: bool = True
    micro_batch_tokens: int = 16384
    threads: int = 1
    logger: list[str] = field(default_factory=list)
    samples_every: int = 10


@dataclass
class GrpoSettings:
    """Everything that ``config/single/grpo.yaml`` documents."""

    model: ModelSettings = field(default_factory=ModelSettings)
    mesh: MeshSettings = field(default_factory=MeshSettings)
    data: GrpoDataSettings = field(default_factory=GrpoDataSettings)
    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    algorithm: AlgorithmSettings = field(default_factory=AlgorithmSettings)
    optim: OptimSettings = field(default_factory=OptimSettings)
    reward: RewardSettings = field(default_factory=RewardSettings)
    trainer: GrpoTrainerSettings = field(default_factory=GrpoTrainerSettings)


NOT_THE_RESULT = (
    "model.path",
    "model.activation_checkpointing",
    "mesh.",
    "data.train_files",
    "data.val_files",
    "rollout.max_rows",
    "rollout.server_url",
    "rollout.bucket_mb",
    "rollout.gpu_memory",
    "algorithm.max_generation_batches",
    "reward.judge_seconds",
    "reward.max_error_rate",
    *(f"trainer.{name}" for name in GrpoTrainerSettings.__dataclass_fields__ if name != "steps"),
)
CHOICES = {
    "algorithm.advantage": ("grpo", "dr_grpo", "rloo", "reinforce_plus_plus"),
    "algorithm.loss_aggregation": ("token", "sequence", "dr_grpo"),
    "algorithm.kl": ("none", "k1", "k2", "k3"),
    "rollout.engine": ("builtin", "vllm", "server"),
    "reward.shape": tuple(Shape),
}
AT_LEAST_ONE = (
    "data.prompts_per_step",
    "data.max_prompt_tokens",
    "rollout.n",
    "rollout.max_tokens",
    "algorithm.updates_per_step",
    "algorithm.max_generation_batches",
    "trainer.steps",
    "trainer.micro_batch_tokens",
    "trainer.threads",
)


def check_settings(settings: GrpoSettings) -> None:
    """Settings that no run can have."""
    flat = flatten(asdict(settings))
    for key, choices in CHOICES.items():
        if flat[key] not in choices:
            raise UserError(f"{key}={flat[key]}: not one of {', '.join(choices)}")
    for key in AT_LEAST_ONE:
        if flat[key] < 1:
            raise UserError(f"{key}={flat[key]}: must be at least 1")
    for key in ("optim.lr", "rollout.temperature"):
        if not flat[key] > 0:
            raise UserError(f"{key}={flat[key]}: must be more than 0")
    data, algorithm, rollout = settings.data, settings.algorithm, settings.rollout
    if not data.train_files:
        raise UserError("data.train_files: give at least one problem file")
    if data.prompts_per_step % algorithm.updates_per_step:
        raise UserError(
            f"algorithm.updates_per_step={algorithm.updates_per_step} does not divide "
            f"data.prompts_per_step={data.prompts_per_step}"
        )
    alone = algorithm.advantage == "reinforce_plus_plus" and not algorithm.drop_equal_groups
    if rollout.n < 2 and not alone:
        raise UserError(f"rollout.n={rollout.n}: a group of one answer has nothing to compare it with; take at least 2")
    if algorithm.dynamic_sampling and not algorithm.drop_equal_groups:
        raise UserError("algorithm.dynamic_sampling=true replaces equal groups: it needs drop_equal_groups=true")
    if algorithm.overlong_buffer > rollout.max_tokens:
        raise UserError(f"algorithm.overlong_buffer={algorithm.overlong_buffer} is more than rollout.max_tokens")


def check_positions(settings: GrpoSettings, positions: int | None) -> None:
    """Prompt and answer must fit the model."""
    longest = settings.data.max_prompt_tokens + settings.rollout.max_tokens
    if positions is not None and longest > positions:
        raise UserError(
            f"data.max_prompt_tokens + rollout.max_tokens = {longest} tokens, but {settings.model.path} has only "
            f"{positions} positions"
        )


def make_recipe(settings: GrpoSettings) -> Recipe:
    """What the trained weights depend on: no paths, nothing that only changes how fast or where they are made."""
    flat = flatten(asdict(settings))
    kept = {key: value for key, value in flat.items() if key == "trainer.steps" or not key.startswith(NOT_THE_RESULT)}
    files = {f"train_file_{number}": Path(path) for number, path in enumerate(settings.data.train_files)}
    return Recipe("train_grpo_single", kept, {"model": Path(settings.model.path), **files})
