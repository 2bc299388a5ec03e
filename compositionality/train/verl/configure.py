"""Make verl's whole configuration for a run, by pure functions of the program's settings.

verl's defaults come first, then config/verl/*.yaml, our code by its name (hooks.py), our settings under verl's keys,
``verl.KEY=value``, and what follows from all of these. A setting that verl lacks is refused; README.md has the table
of keys. The section ``run`` is ours: what our processes around verl read.
"""

import importlib.metadata
import importlib.util
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from compositionality.errors import MissingPackageError, UserError
from compositionality.gpus import gpu_share
from compositionality.reward.function import place_of
from compositionality.train.boards import run_name
from compositionality.train.checks import VERLS_SETUP, refuse_foreign_keys
from compositionality.train.grpo_settings import GAE, AlgorithmSettings, GrpoSettings
from compositionality.train.memory import kept_checkpoints
from compositionality.train.run_folder import flatten
from compositionality.train.settings import LoraSettings, ModelSettings, OptimSettings
from compositionality.train.sft_settings import SftSettings
from compositionality.train.verl import hooks
from compositionality.train.verl.memory import has_reference
from compositionality.train.verl.prompts import run_keys

try:
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import DictConfig, OmegaConf, open_dict
    from omegaconf.errors import OmegaConfBaseException
except ModuleNotFoundError as error:
    raise MissingPackageError(f"engine=verl: the package {error.name} is not installed; run {VERLS_SETUP}") from error
except Exception as error:  # antlr4 raises Exception itself
    if "ATN" not in str(error):
        raise
    parser = "antlr4-python3-runtime"
    raise UserError(
        f"engine=verl: Hydra, which reads verl's configuration, needs {parser} 4.9, and another package brought "
        f"{importlib.metadata.version(parser)}; run pip install {parser}==4.9.3, or take an environment of its own"
    ) from error

CONFIG_DIR = Path(__file__).resolve().parents[2] / "config" / "verl"
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


def grpo_config(settings: GrpoSettings) -> DictConfig:
    """Return verl's configuration for GRPO; UserError for what verl does not have or know."""
    device = settings.run.device
    keys = {**hooks.GRPO_KEYS, **(hooks.GRPO_CPU_KEYS if device == "cpu" else {}), **grpo_keys(settings)}
    config = compose_config("grpo", device, keys, grpo_run(settings), settings.verl)
    rollout, data, ray = config.actor_rollout_ref.rollout, config.data, config.ray_kwargs.ray_init
    precision = f"{ACTOR}.fsdp_config.mixed_precision"
    with open_dict(config):
        if has_reference(config) and OmegaConf.select(config, f"{precision}.param_dtype") != VERLS_PRECISION:
            config.actor_rollout_ref.ref.fsdp_config.setdefault("mixed_precision", f"${{{precision}}}")
        if rollout.max_model_len is None:
            rollout.max_model_len = data.max_prompt_length + data.max_response_length
        if device == "cpu":  # a prompt that the token budget splits kills vLLM's CPU build when its request has a seed
            rollout.max_num_batched_tokens = rollout.max_num_seqs * data.max_prompt_length
        ray.address = config.run.ray_address or "local"  # one on this machine, whatever else runs on it
        if config.run.ray_address:
            for key in ("num_cpus", "num_gpus", "include_dashboard"):  # the cluster's own business
                ray.pop(key, None)
    return config


def sft_config(settings: SftSettings) -> DictConfig:
    """Return verl's configuration for supervised fine-tuning; UserError for what verl does not have or know."""
    keys = {**hooks.SFT_KEYS, **sft_keys(settings)}
    return compose_config("sft", settings.run.device, keys, sft_run(settings), settings.verl)


# ---- our settings under verl's keys: GRPO

_SAME_NAMES = ("grpo", GAE, "rloo", hooks.RAFT, "reinforce_plus_plus", "reinforce_plus_plus_baseline")
ADVANTAGES = {**{name: (name, True) for name in _SAME_NAMES}, "dr_grpo": ("grpo", False)}
"""Our name → verl's estimator (raft: that of extensions.py), and whether its grpo divides by the group's deviation."""
LOSS_AGGREGATIONS = {"token": "token-mean", "sequence": "seq-mean-token-mean", "dr_grpo": "seq-mean-token-sum-norm"}
VERLS_PRECISION = "bf16"
"""Precision of a reference without ``mixed_precision``, which then differs from a float32 start before any update."""
GRPO_INSTEAD = {
    "mesh.shard": "FSDP always shards",
    "optim.decay_power": "give verl.actor_rollout_ref.actor.optim.lr_scheduler_type=cosine",
    "data.train_limit": "give verl.data.train_max_samples",
    "rollout.max_rows": "give verl.actor_rollout_ref.rollout.max_num_seqs",
    "rollout.server_url": "vLLM runs inside it",
    "rollout.bucket_mb": "give verl.actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes",
    "algorithm.importance_cap": "give verl.algorithm.rollout_correction.rollout_is_threshold",
    "trainer.eval_limit": "give verl.data.val_max_samples",
    **{f"run.{key}": "Ray finds its nodes by run.ray_address" for key in ("node_rank", "master_addr", "master_port")},
}
"""Advice for keys that verl's GRPO lacks, other than engine=single."""


def grpo_keys(settings: GrpoSettings) -> dict[str, Any]:
    """Return verl's keys for GRPO; UserError for a setting that verl does not have."""
    refuse_foreign_keys(settings, GRPO_INSTEAD)
    data, rollout, trainer, algorithm = settings.data, settings.rollout, settings.trainer, settings.algorithm
    out, device = Path(trainer.output).absolute(), settings.run.device
    validated = data.val_files or data.train_files[:1]  # verl reads a file even where it never validates
    eval_every = trainer.eval_every if data.val_files else 0
    longest = data.max_prompt_tokens + rollout.max_tokens
    return {
        **_keys_of_a_run(settings),
        "data.val_files": [str(Path(path).absolute()) for path in validated],
        "data.seed": data.seed,
        "data.shuffle": data.shuffle,
        "data.train_batch_size": data.prompts_per_step,
        "data.max_prompt_length": data.max_prompt_tokens,
        "data.max_response_length": rollout.max_tokens,
        f"{ROLLOUT}.name": rollout.engine,
        f"{ROLLOUT}.n": rollout.n,
        f"{ROLLOUT}.temperature": rollout.temperature,
        f"{ROLLOUT}.top_p": rollout.top_p,
        f"{ROLLOUT}.top_k": rollout.top_k or -1,
        f"{ROLLOUT}.seed": rollout.seed,
        f"{ROLLOUT}.dtype": settings.model.dtype,
        f"{ROLLOUT}.tensor_model_parallel_size": settings.mesh.tensor,
        **({f"{ROLLOUT}.gpu_memory_utilization": rollout.gpu_memory * gpu_share()} if device == "gpu" else {}),
        f"{ROLLOUT}.val_kwargs.n": trainer.eval_samples,
        "trainer.rollout_data_dir": str(out / "rollouts"),
        "trainer.validation_data_dir": str(out / "validation"),
        "trainer.total_training_steps": trainer.steps if trainer.epochs else trainer.last_step(),
        **({"trainer.total_epochs": trainer.epochs} if trainer.epochs else {}),
        "trainer.save_freq": trainer.save_every or trainer.last_step(),
        "trainer.test_freq": eval_every or -1,
        "trainer.val_before_train": eval_every > 0,
        f"{ACTOR}.ppo_mini_batch_size": data.prompts_per_step // algorithm.updates_per_step,
        f"{ACTOR}.ppo_max_token_len_per_gpu": max(trainer.micro_batch_tokens, longest),
        f"{ACTOR}.fsdp_config.mixed_precision.param_dtype": DTYPES[settings.model.dtype],
        **_model_keys(settings.model, device, "actor_rollout_ref.model"),
        **_optim_keys(settings.optim, f"{ACTOR}.optim"),
        **_algorithm_keys(algorithm, rollout.max_tokens),
        **({"algorithm.filter_groups.metric": "score"} if settings.reward.by_reward() else {}),
        **(_critic_keys(settings) if algorithm.advantage == GAE else {}),
    }


def _algorithm_keys(algorithm: AlgorithmSettings, max_tokens: int) -> dict[str, Any]:
    if algorithm.drop_equal_groups and not algorithm.dynamic_sampling:
        raise UserError(
            "algorithm.drop_equal_groups=true without dynamic_sampling: engine=verl does not have it; add "
            "algorithm.dynamic_sampling=true (others replace them) or algorithm.drop_equal_groups=false (they stay)"
        )
    if algorithm.advantage not in ADVANTAGES:  # of a reader's own
        raise UserError(
            f"algorithm.advantage={algorithm.advantage}: engine=verl does not have it; name it in ADVANTAGES "
            "(train/verl/configure.py), or take engine=single"
        )
    estimator, by_std = ADVANTAGES[algorithm.advantage]
    on_policy = algorithm.updates_per_step == 1
    kl = {f"{ACTOR}.kl_loss_type": algorithm.kl, f"{ACTOR}.kl_loss_coef": algorithm.kl_coef}
    return {
        "algorithm.adv_estimator": estimator,
        "algorithm.norm_adv_by_std_in_grpo": by_std,
        "algorithm.filter_groups.enable": algorithm.dynamic_sampling,
        "algorithm.filter_groups.max_num_gen_batches": algorithm.max_generation_batches,
        # One update for a batch: the old policy is the present one, and no pass computes its log-probabilities.
        "algorithm.rollout_correction.bypass_mode": on_policy,
        f"{ACTOR}.policy_loss.loss_mode": hooks.ON_POLICY if on_policy else "vanilla",
        f"{ACTOR}.clip_ratio_low": algorithm.clip_low,
        f"{ACTOR}.clip_ratio_high": algorithm.clip_high,
        f"{ACTOR}.loss_agg_mode": LOSS_AGGREGATIONS[algorithm.loss_aggregation],
        **({f"{ACTOR}.loss_scale_factor": max_tokens} if algorithm.loss_aggregation == "dr_grpo" else {}),
        f"{ACTOR}.entropy_coeff": algorithm.entropy_coef,
        f"{ACTOR}.use_kl_loss": algorithm.kl != "none",
        **(kl if algorithm.kl != "none" else {}),
    }


def _critic_keys(settings: GrpoSettings) -> dict[str, Any]:
    """Return the keys of a critic of the policy's shape, optimizer and precision, but for its learning rate."""
    critic, algorithm = settings.critic, settings.algorithm
    shared = ("strategy", "ulysses_sequence_parallel_size", "ppo_max_token_len_per_gpu", "use_dynamic_bsz")
    return {
        "algorithm.gamma": algorithm.gamma,
        "algorithm.lam": algorithm.gae_lambda,
        "trainer.critic_warmup": critic.alone_steps,
        "critic.cliprange_value": critic.clip,
        **{f"critic.{name}": f"${{{ACTOR}.{name}}}" for name in shared},
        "critic.fsdp": f"${{{ACTOR}.fsdp_config}}",
        **_model_keys(replace(settings.model, lora=LoraSettings()), settings.run.device, "critic.model"),
        "critic.model.path": "${actor_rollout_ref.model.path}",  # the folder, once the launcher has found it
        **_optim_keys(replace(settings.optim, lr=critic.lr), "critic.optim"),
    }


# ---- SFT

SFT_INSTEAD = {
    "mesh.tensor": "FSDP does not split layers; see verl.engine.ulysses_sequence_parallel_size",
    "mesh.shard": "FSDP always shards",
    "trainer.tokens": "give trainer.steps",
    "trainer.tokens_of": "give trainer.steps_of",
    "trainer.batch_tokens": "give trainer.batch_rows",
    "trainer.batch_of": "give trainer.batch_rows",
    "trainer.log_every": "it writes a row for every update",
}


def sft_keys(settings: SftSettings) -> dict[str, Any]:
    """Return verl's keys for supervised fine-tuning; UserError for a setting that verl does not have."""
    refuse_foreign_keys(settings, SFT_INSTEAD)
    data, trainer = settings.data, settings.trainer
    return {
        **_keys_of_a_run(settings),
        "data.messages_key": data.messages_key,
        "data.prompt_key": data.prompt_key,
        "data.response_key": data.response_key,
        "data.train_batch_size": trainer.batch_rows,
        "data.max_length": data.max_length,
        "data.max_token_len_per_gpu": trainer.micro_batch_tokens,
        "engine.mixed_precision.param_dtype": DTYPES[settings.model.dtype],
        "trainer.seed": data.seed,
        "trainer.total_epochs": trainer.epochs,
        "trainer.total_training_steps": trainer.steps,
        "trainer.save_freq": trainer.save_every or "after_each_epoch",
        **_model_keys(settings.model, settings.run.device, "model"),
        **_optim_keys(settings.optim, "optim"),
    }


# ---- both

DTYPES = {"float32": "fp32", "bfloat16": "bf16"}


def _keys_of_a_run(settings: GrpoSettings | SftSettings) -> dict[str, Any]:
    """Return keys of a run's files and name; absolute paths, as on a cluster verl starts its processes elsewhere."""
    trainer = settings.trainer
    return {
        "data.train_files": [str(Path(path).absolute()) for path in settings.data.train_files],
        "trainer.default_local_dir": str(Path(trainer.output).absolute() / "steps"),
        "trainer.experiment_name": run_name(Path(trainer.output)),
        "trainer.logger": [*dict.fromkeys(["console", *trainer.logger])],
    }


def _model_keys(model: ModelSettings, device: str, prefix: str) -> dict[str, Any]:
    """Return the keys of the model.

    On a GPU a micro-batch is one packed row, with any attention: transformers reads from the positions where each row
    begins. verl cuts micro-batches by real tokens, so that padding one to its longest row may take many times
    ``trainer.micro_batch_tokens``. On a CPU padding is four times faster (4.1 and 1.0 updates of 128 rows a second on a
    core): sdpa computes a packed row's attention over all of its tokens.
    """
    lora = {
        f"{prefix}.lora_rank": model.lora.rank,
        f"{prefix}.lora_alpha": model.lora.alpha,
        f"{prefix}.target_modules": model.lora.targets or "all-linear",
        f"{prefix}.lora.merge": True,  # vLLM gets whole weights, so any model samples at full speed
    }
    return {
        f"{prefix}.path": model.path,
        f"{prefix}.enable_gradient_checkpointing": model.activation_checkpointing,
        f"{prefix}.override_config.attn_implementation": model.attention,
        f"{prefix}.use_remove_padding": device == "gpu",
        **(lora if model.lora.rank else {}),
    }


def _optim_keys(optim: OptimSettings, prefix: str) -> dict[str, Any]:
    return {
        f"{prefix}.lr": optim.lr,
        f"{prefix}.betas": [optim.beta1, optim.beta2],
        f"{prefix}.weight_decay": optim.weight_decay,
        f"{prefix}.lr_warmup_steps": optim.warmup_steps,
        f"{prefix}.clip_grad": optim.max_grad_norm,
    }


# ---- the section ``run``: what our processes around verl read


def grpo_run(settings: GrpoSettings) -> dict[str, Any]:
    """Return the section ``run`` of GRPO's configuration."""
    reward = settings.reward
    return {
        **_run(settings),
        **run_keys(settings),
        "reward_shape": reward.shape,
        "reward_function": reward.function and ":".join(map(str, place_of(reward.function))),
        "judge_seconds": reward.judge_seconds,
        "max_error_rate": reward.max_error_rate,
        "generation_batch_size": settings.generation_batch(),
        "keep_best": settings.trainer.keep_best,
        "samples_every": settings.trainer.samples_every,
        "epochs": settings.trainer.epochs,
    }


def sft_run(settings: SftSettings) -> dict[str, Any]:
    """Return the section ``run`` of SFT's configuration."""
    return {**_run(settings), "decay_power": settings.optim.decay_power}


def _run(settings: GrpoSettings | SftSettings) -> dict[str, Any]:
    data, trainer = settings.data, settings.trainer
    place = asdict(settings.run)
    if settings.run.stall_minutes is None:
        del place["stall_minutes"]  # the device's file says
    return {
        **place,
        "model": settings.model.path,
        "train_files": list(data.train_files),
        "val_files": list(data.val_files),
        "output": trainer.output,
        "keep": trainer.keep,
        "kept": kept_checkpoints(settings),
        "export_dtype": trainer.export_dtype,
        "threads": trainer.threads,
        "dry_run": settings.dry_run,
        "force": settings.force,
    }


# ---- verl's defaults, with all these keys set


def compose_config(
    name: str, device: str, keys: Mapping[str, Any], run: Mapping[str, Any], verls: Mapping[str, Any]
) -> DictConfig:
    """Set ``config/verl/NAME.yaml``, a section ``run``, ``keys``, and the user's ``verl.…`` on verl's defaults."""
    words = (f"hydra.searchpath=[file://{_verl_folder() / 'trainer' / 'config'}]", f"{name}_device={device}")
    try:
        with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
            config = deepcopy(_composed(name, words))
        with open_dict(config):
            config.run = {**config.run, **run}
        for key, value in {**keys, **flatten(verls)}.items():
            if key:
                set_key(config, key, value)
        OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(" ".join(str(error).partition("Config search path")[0].split())) from error
    return config


@cache  # the steps of a study share what Hydra composes
def _composed(name: str, words: tuple[str, ...]) -> DictConfig:
    return compose(config_name=name, overrides=[*words])


def set_key(config: DictConfig, key: str, value: Any) -> None:
    """Set an existing dotted key, or any below an empty mapping; with Hydra's signs before it another one.

    ``+``: a new one; ``++``: either; ``~``: remove it. UserError for another key or its type.
    """
    plain = key.lstrip("+~")
    sign = key.removesuffix(plain)
    *parents, name = plain.split(".")
    nodes = [OmegaConf.select(config, above) for above in accumulate(parents, "{}.{}".format)] or [config]
    node = nodes[-1]
    exists = isinstance(node, DictConfig) and name in node.keys()  # noqa: SIM118
    addable = sign in ("+", "++") and all(isinstance(above, DictConfig | None) for above in nodes)
    allowed = exists or addable or (isinstance(node, DictConfig) and not sign and not len(node))
    if not allowed or plain.partition(".")[0] == "run":
        word = f"{sign}verl.{plain}" + ("" if sign == "~" else f"={value}")
        raise UserError(f"{word}: verl has no such key; engine=verl --cfg lists its keys")
    if exists and sign == "+":
        raise UserError(f"+verl.{plain}={value}: verl has this key; give verl.{plain}={value}")
    before = OmegaConf.select(config, plain) if exists and sign != "~" else None
    if isinstance(before, int | float) and value is not None:
        # a text may be a word that verl knows, as after_each_epoch, or ${another.key}; with a comma it is a sweep
        wrong = "," in value if isinstance(value, str) else isinstance(value, bool) != isinstance(before, bool)
        if wrong:
            raise UserError(f"verl.{plain}={value}: give {'true or false' if isinstance(before, bool) else 'a number'}")
    with open_dict(config):
        if sign == "~":
            node.pop(name)
        else:
            OmegaConf.update(config, plain, value, merge=False, force_add=bool(sign))


def _verl_folder() -> Path:
    """Find where verl is installed, without importing it (which takes seconds). UserError for another verl."""
    spec = importlib.util.find_spec("verl")
    fix = f"run {VERLS_SETUP}"
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"engine=verl: verl is not installed; {fix}")
    for verl in importlib.metadata.distributions(name="verl"):  # none: a checkout of verl, its owner's affair
        if verl.version.split(".")[:2] != hooks.VERL.split(".")[:2]:
            raise UserError(f"engine=verl: verl {verl.version} is installed, and this needs {hooks.VERL}; {fix}")
    return Path(spec.submodule_search_locations[0])
