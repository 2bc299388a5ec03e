"""The settings of GRPO with either engine, and their only defaults; ``checks.py`` says what no run can have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from compositionality.data.artefact import Recipe, is_to_be_checked, name_inputs
from compositionality.data.row_format import RowFormat, RowSettings
from compositionality.ranges import (
    REQUIRED,
    Fraction,
    NoEffect,
    NonNegativeFloat,
    NonNegativeInt,
    OfProfile,
    OneOf,
    OnlySingle,
    OnlyVerl,
    PositiveFloat,
    PositiveFraction,
    PositiveInt,
    Seed,
)
from compositionality.reward.function import FunctionSettings, function_of
from compositionality.reward.pool import JudgePool
from compositionality.reward.shapes import Control, Shape, overlong_penalty, replace_rewards, reward, shape_of
from compositionality.train.metrics import ROLLOUT_ENTROPY, entropies
from compositionality.train.settings import (
    ClusterSettings,
    Files,
    MeshSettings,
    ModelSettings,
    OptimSettings,
    Trainer,
    TrainerSettings,
    VerlsKeys,
    result_settings,
)
from compositionality.types import PromptGroup, Verdict

GAE = "gae"
STEPS = 100
Advantage = Annotated[
    str, OneOf(("grpo", "dr_grpo", "rloo", "raft", "reinforce_plus_plus", "reinforce_plus_plus_baseline", GAE))
]
Aggregation = Annotated[str, OneOf(("token", "sequence", "dr_grpo"))]
TooFew = Annotated[str, OneOf(("stop", "train"))]
KlTerm = Annotated[str, OneOf(("auto", "none", "k1", "k2", "k3"))]
ShapeName = Annotated[str, OneOf(("auto", Shape.BINARY, Shape.PAPER, Shape.SCORE))]
ControlName = Annotated[str, OneOf(tuple(Control))]


@dataclass
class GrpoDataSettings(RowSettings):
    """Problem files, how their rows are read, and how many problems a step takes from them."""

    train_files: Files = REQUIRED  # problem files (parquet or .jsonl), "[a.parquet,b.parquet]"
    val_files: Files = field(default_factory=list)  # problem files; accuracy is reported by data_source
    seed: Seed = 1  # order of the problems
    shuffle: bool = True  # in every pass over the files; false: keep their order
    train_limit: OnlySingle[PositiveInt | None] = None  # problems of each data source to train on; null: all
    prompts_per_step: PositiveInt = 16  # groups of an update
    max_prompt_tokens: PositiveInt = 1024  # longer prompts are refused before the start
    apply_chat_template: bool = True  # false: a prompt is its text and no more (R1-zero), also for the model made


@dataclass
class GrpoRolloutSettings:
    """Settings of sampling completions."""

    engine: str = "auto"  # single: builtin, vllm (in this process), server (at server_url); verl: vllm, sglang
    n: PositiveInt = 16  # completions of a problem: a group
    temperature: PositiveFloat = 1.0  # logits are divided by it
    top_p: PositiveFraction = 1.0  # 1: off
    top_k: NonNegativeInt = 0  # 0: off
    max_tokens: PositiveInt = 8192  # of a completion; longer ones are cut and count as wrong
    seed: Seed = 1  # of the completions
    max_rows: OnlySingle[NoEffect[PositiveInt]] = 256  # builtin: completions that are drawn at once
    server_url: OnlySingle[NoEffect[str | None]] = None  # server: address of SGLang or vLLM
    bucket_mb: OnlySingle[NoEffect[PositiveInt]] = 512  # weights that go to the sampler at once
    gpu_memory: NoEffect[PositiveFraction] = 0.4  # share of the GPU for vLLM
    generation_batch: PositiveInt | None = None  # dynamic sampling: problems asked at once; null: twice those of a step


@dataclass
class AlgorithmSettings:
    """The objective, and the groups used for it; README.md has the formulas."""

    advantage: Advantage = "grpo"  # how a reward is compared; loss_aggregation is the other half; gae: verl
    gamma: PositiveFraction = 1.0  # gae: discount of a token
    gae_lambda: Fraction = 0.95  # gae: 0 the critic's next value alone, 1 the whole return
    loss_aggregation: Aggregation = "token"  # mean over tokens; mean of means; dr_grpo: sum / (rows × max_tokens)
    clip_low: Fraction = 0.2  # the ratio of policies is clipped to 1 - clip_low … 1 + clip_high
    clip_high: NonNegativeFloat = 0.2  # DAPO: 0.28
    updates_per_step: OfProfile[PositiveInt] = 1  # 1: strictly on-policy
    kl: KlTerm = "auto"  # distance to the starting model as a loss; none: whatever kl_coef is; auto: k3 with a kl_coef
    kl_coef: NonNegativeFloat = 0.0  # weight of that loss
    entropy_coef: float = 0.0  # weight of the entropy, which is maximised
    entropy_like: OnlySingle[NoEffect[str | None]] = None  # metrics.jsonl of a run whose entropy is followed
    importance_cap: OnlySingle[OfProfile[PositiveFloat | None]] = None  # largest weight trainer / sampler of a token
    drop_equal_groups: bool | None = None  # leave out groups that are all right or all wrong; null: as dynamic_sampling
    dynamic_sampling: bool = False  # DAPO: sample on until prompts_per_step groups with signal are there
    max_generation_batches: OfProfile[NoEffect[PositiveInt]] = 10  # at most for an update, times generation_batch
    too_few_groups: OnlySingle[OfProfile[NoEffect[TooFew]]] = "stop"  # then: stop with a checkpoint, or train
    overlong_buffer: OnlySingle[NonNegativeInt] = 0  # DAPO: the last so many tokens allowed cost up to overlong_penalty
    overlong_penalty: OnlySingle[NonNegativeFloat] = 1.0  # reward lost at the last of them; DAPO: 0.5 with 0 and 1

    def settle(self) -> None:
        """Set the KL term that ``kl=auto`` stands for; ``kl=none`` wins over a weight, which a profile may have set."""
        if self.kl == "auto":
            self.kl = "k3" if self.kl_coef else "none"
        if self.kl == "none":
            self.kl_coef = 0.0

    def drops_equal_groups(self) -> bool:
        """Return whether groups that are all right or all wrong are left out of the update."""
        return self.dynamic_sampling if self.drop_equal_groups is None else self.drop_equal_groups

    def entropy_weight(self, metrics: Mapping[str, float], target: float | None) -> float:
        """Return the entropy's weight in a step's loss; with a ``target``, negative where the rollouts' is above it."""
        return self.entropy_coef if target is None else self.entropy_coef * (target - metrics[ROLLOUT_ENTROPY])

    def penalty(self, n_tokens: int, max_tokens: int) -> float:
        """Return what is added to the reward of a completion of this length: 0 or less."""
        return overlong_penalty(n_tokens, max_tokens, self.overlong_buffer, self.overlong_penalty)


@dataclass
class CriticSettings:
    """PPO's critic, which starts as the model itself with a new head; used where ``algorithm.advantage=gae``."""

    lr: PositiveFloat = 1e-5  # learning rate
    clip: PositiveFloat = 0.5  # a value moves by at most so much from the one before the update
    alone_steps: NonNegativeInt = 0  # first steps, in which the critic alone is trained


@dataclass
class GrpoRewardSettings(FunctionSettings):
    """From verdict to reward."""

    custom_reward_function: NoEffect[dict[str, Any]] = field(default_factory=dict)  # function by verl's names
    shape: ShapeName = "auto"  # binary: 1/0; paper: +1, 0, −1 unreadable or too long; score; auto: score of a function
    control: OnlySingle[ControlName] = "none"  # shuffled: permuted in a call; random: as often 1; format: 1 if readable
    judge_seconds: NoEffect[PositiveFloat] = 10.0  # a slower verdict is an error
    max_error_rate: NoEffect[Fraction] = 0.01  # share of completions on which the judge may fail

    def by_reward(self) -> bool:
        """Return whether a group has signal where its rewards differ, not where some completions are right."""
        return self.control != Control.NONE or self.shape == Shape.SCORE

    def settle(self, verl: dict[str, Any]) -> None:
        """Take verl's names for ``function``, those among its own keys too, and the shape that *auto* stands for."""
        name, section = "custom_reward_function", verl.get("reward")
        places = [vars(self), verl, *([section] if isinstance(section, dict) else [])]
        for names in filter(None, [place.pop(name, None) for place in places]):
            self.function = function_of(names, self.function)
        self.custom_reward_function = {}
        if section == {}:
            del verl["reward"]
        if self.shape == "auto":
            self.shape = (Shape.SCORE if self.function else Shape.BINARY).value  # OmegaConf writes the name of a member

    def reward(self, verdict: Verdict) -> float | None:
        """Return the reward of a verdict; None where the judge failed."""
        return reward(verdict, shape_of(self.control, self.shape))

    def replace(self, groups: Sequence[PromptGroup], seed: Sequence[int]) -> None:
        replace_rewards(self.control, groups, seed)

    def judges(self) -> JudgePool:
        return JudgePool(1, self.judge_seconds, self.max_error_rate, function=self.function)


@dataclass
class GrpoTrainerSettings(TrainerSettings):
    """The run: its folder, its length in updates, and what is written how often (in steps; 0: never)."""

    steps: PositiveInt | None = None  # updates (with updates_per_step=1); null: 100, or as many as epochs gives
    epochs: PositiveInt | None = None  # passes over the problems, in whole steps; beside steps the smaller wins
    save_every: NonNegativeInt = 25  # steps between checkpoints (0: one at the end)
    eval_every: NonNegativeInt = 25  # steps between evaluations, and one before the first (0: none at all)
    eval_limit: OnlySingle[PositiveInt | None] = None  # problems of each data source; null: all
    eval_samples: PositiveInt = 1  # completions of each of them; of several pass@k is reported, too
    keep_best: bool = True  # and the best by validation, as best/
    samples_every: NonNegativeInt = 10  # steps between files of completions to read (0: none)

    def last_step(self) -> int:
        """Return the number of the last step, once ``settle_epochs`` has counted the problems."""
        return self.steps or STEPS


@dataclass
class GrpoSettings:
    """Settings of ``examples/train_grpo.py`` and ``compositionality/train/grpo.py``."""

    engine: NoEffect[Trainer] = "single"  # single: compositionality/train/grpo.py; verl: verl, Ray and vLLM
    model: ModelSettings = field(default_factory=ModelSettings)
    mesh: NoEffect[MeshSettings] = field(default_factory=MeshSettings)
    data: GrpoDataSettings = field(default_factory=GrpoDataSettings)
    rollout: GrpoRolloutSettings = field(default_factory=GrpoRolloutSettings)
    algorithm: AlgorithmSettings = field(default_factory=AlgorithmSettings)
    optim: OptimSettings = field(default_factory=lambda: OptimSettings(lr=1e-6))
    critic: OnlyVerl[CriticSettings] = field(default_factory=CriticSettings)
    reward: GrpoRewardSettings = field(default_factory=GrpoRewardSettings)
    trainer: NoEffect[GrpoTrainerSettings] = field(default_factory=GrpoTrainerSettings)
    run: NoEffect[ClusterSettings] = field(default_factory=ClusterSettings)
    verl: VerlsKeys = field(default_factory=dict)  # its own keys by its own names, verl.KEY=value; come last
    force: NoEffect[bool] = False  # replace a result that was made from something else
    dry_run: NoEffect[bool] = False  # check the settings and show what would run

    def __post_init__(self) -> None:
        """Set the engine's usual sampler, the KL term, and verl's names for the reward function."""
        self.reward.settle(self.verl)
        self.algorithm.settle()
        if self.rollout.engine == "auto":
            self.rollout.engine = "vllm" if self.engine == "verl" else "builtin"

    def is_over(self, step: int, asked: int, problems: int) -> bool:
        """Return whether ``step`` was the last, after ``asked`` of the stream of ``problems``: trainer.steps are
        made, or trainer.epochs leaves too few for another."""
        epochs = self.trainer.epochs
        used_up = epochs is not None and epochs * problems - asked < self.data.prompts_per_step
        return used_up or step >= self.trainer.last_step()

    def generation_batch(self) -> int:
        """Return the problems that a step asks at once; with dynamic sampling twice an update's, unless given."""
        update = self.data.prompts_per_step
        return (self.rollout.generation_batch or 2 * update) if self.algorithm.dynamic_sampling else update

    def row_format(self) -> RowFormat:
        return self.data.row_format(any_source=self.reward.function is not None)


def make_recipe(settings: GrpoSettings) -> Recipe:
    """Return what the trained weights depend on: no paths, nothing that only changes how fast or where."""
    values = result_settings(settings)
    values["trainer.steps"] = settings.trainer.last_step()
    if settings.algorithm.too_few_groups == "train":  # else the limit decides only whether the run comes to its end
        values["algorithm.max_generation_batches"] = settings.algorithm.max_generation_batches
    if settings.trainer.epochs is not None:
        values["trainer.epochs"] = settings.trainer.epochs
    values["train_files"] = names = name_inputs("train_files", settings.data.train_files)  # in order
    files = dict(zip(names, map(Path, settings.data.train_files), strict=True)) | settings.data.inputs()
    like = settings.algorithm.entropy_like
    if like is not None and is_to_be_checked(like, dry=settings.dry_run):
        values["entropies"] = entropies(Path(like), settings.trainer.last_step())
    inputs = {"model": Path(settings.model.path), **files, **settings.reward.inputs()}
    return Recipe("train_grpo_single", values, inputs)
