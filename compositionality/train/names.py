"""Answer a setting by another program's name with ours: TRL's by a table, verl's by what our keys change.

Which of our keys changes verl's is found by changing each once.
"""

import copy
from collections import defaultdict
from contextlib import suppress
from functools import cache, reduce
from typing import Any

from compositionality.errors import UserError
from compositionality.train.grpo_settings import GAE, GrpoSettings
from compositionality.train.settings import marked_settings
from compositionality.train.sft_settings import SftSettings
from compositionality.validation import keys_of

TRL_NAMES = {
    "algorithm.advantage": "scale_rewards",
    "algorithm.clip_high": "epsilon_high",
    "algorithm.clip_low": "epsilon",
    "algorithm.entropy_coef": "entropy_coef",
    "algorithm.importance_cap": "vllm_importance_sampling_cap vllm_importance_sampling_clip_max",
    "algorithm.kl_coef": "beta",
    "algorithm.loss_aggregation": "loss_type",
    "algorithm.updates_per_step": "num_iterations",
    "data.max_length": "max_length max_seq_length",
    "data.max_prompt_tokens": "max_prompt_length",
    "data.messages_key": "dataset_text_field",
    "data.prompt_loss": "assistant_only_loss completion_only_loss",
    "data.prompts_per_step": "per_device_train_batch_size",
    "data.seed": "data_seed seed",
    "data.shuffle": "shuffle_dataset",
    "data.train_files": "dataset_name train_dataset",
    "data.val_files": "eval_dataset",
    "mesh.tensor": "vllm_tensor_parallel_size",
    "model.activation_checkpointing": "gradient_checkpointing",
    "model.attention": "attn_implementation",
    "model.dtype": "bf16 dtype fp16 torch_dtype",
    "model.lora.alpha": "lora_alpha",
    "model.lora.rank": "lora_r use_peft",
    "model.lora.targets": "lora_target_modules",
    "model.path": "model_name_or_path",
    "optim.beta1": "adam_beta1",
    "optim.beta2": "adam_beta2",
    "optim.decay_power": "lr_scheduler_type",
    "optim.lr": "learning_rate",
    "optim.max_grad_norm": "max_grad_norm",
    "optim.warmup_steps": "warmup_ratio warmup_steps",
    "optim.weight_decay": "weight_decay",
    "reward.function": "reward_funcs",
    "rollout.engine": "use_vllm vllm_mode",
    "rollout.gpu_memory": "vllm_gpu_memory_utilization",
    "rollout.max_tokens": "max_completion_length",
    "rollout.n": "num_generations",
    "rollout.server_url": "vllm_server_base_url vllm_server_host vllm_server_port",
    "rollout.temperature": "temperature",
    "rollout.top_k": "top_k",
    "rollout.top_p": "top_p",
    "run.device": "use_cpu",
    "trainer.batch_rows": "per_device_train_batch_size",
    "trainer.epochs": "num_train_epochs",
    "trainer.eval_every": "eval_steps eval_strategy",
    "trainer.eval_samples": "num_generations_eval",
    "trainer.keep": "save_total_limit",
    "trainer.keep_best": "load_best_model_at_end",
    "trainer.log_every": "logging_steps",
    "trainer.logger": "report_to",
    "trainer.micro_batch_tokens": "gradient_accumulation_steps",
    "trainer.output": "output_dir run_name",
    "trainer.samples_every": "log_completions",
    "trainer.save_every": "save_steps save_strategy",
    "trainer.steps": "max_steps",
}
"""Our key → its names in TRL (GRPOConfig, SFTConfig, ModelConfig)."""
ELSEWHERE = {
    "trainer.n_gpus_per_node": "run.processes",
    "trainer.nnodes": "run.nodes",
    "custom_reward_function.path": "reward.function",
    "reward.custom_reward_function.path": "reward.function",
}
"""verl's key → ours, where ``configure.py`` does not say it."""


def answer(schema: Any, key: str) -> str:
    """Return ``here KEY`` for a ``key`` that ``schema`` has by another name, or how to pass it to verl; else empty."""
    if "." in key:
        return _answer_verl(schema, key.lstrip("+~"))
    return next((f"here {ours}" for ours in keys_of(schema) if key in TRL_NAMES.get(ours, "").split()), "")


def _answer_verl(schema: Any, key: str) -> str:
    if schema not in (GrpoSettings, SftSettings):
        return ""
    from compositionality.train.verl.configure import grpo_config, sft_config  # isort: skip  (refuses a wrong antlr4)
    from omegaconf import OmegaConf

    if names := [ELSEWHERE[key]] if key in ELSEWHERE else deciding(schema).get(key):
        return f"here {' and '.join(names)}"
    is_verls, config = key.startswith(("actor_rollout_ref.", "critic.")), example(schema)
    with suppress(UserError):  # verl is not installed
        config = grpo_config(config) if schema is GrpoSettings else sft_config(config)
        is_verls = is_verls or OmegaConf.select(config, key) is not None
    return f"give it as verl.{key}=… with engine=verl" if is_verls else ""


def example(schema: type[GrpoSettings] | type[SftSettings]) -> Any:
    """Return settings under which every key that we set of verl's is there."""
    settings: Any = schema(engine="verl")
    settings.model.path, settings.model.lora.rank, settings.trainer.output = "model", 1, "run"
    settings.run.device, settings.run.processes, settings.run.nodes = "gpu", 1, 1
    if isinstance(settings, GrpoSettings):
        settings.data.train_files, settings.data.val_files = ["train"], ["val"]
        settings.algorithm.advantage, settings.algorithm.kl = GAE, "k3"
        settings.trainer.epochs, settings.trainer.micro_batch_tokens = 1, 1 << 20
    else:
        settings.data.train_files = ["train"]
    return settings


@cache
def deciding(schema: Any) -> dict[str, list[str]]:
    """Return, by each of verl's keys that we set, the keys of ``schema`` on which it depends."""
    from compositionality.train.verl.configure import grpo_keys, sft_keys

    settings, translate = example(schema), grpo_keys if schema is GrpoSettings else sft_keys
    before, names = translate(settings), defaultdict[str, dict[str, None]](dict)
    for name, value, _ in marked_settings(settings):
        *path, field = name.split(".")
        for alternative in alternatives(value):
            changed = copy.deepcopy(settings)
            setattr(reduce(getattr, path, changed), field, alternative)
            with suppress(UserError, KeyError, ZeroDivisionError):  # what no run can have
                for key, translated in translate(changed).items():
                    if translated != before.get(key):
                        names[key][name] = None
    return {key: [*deciders] for key, deciders in names.items()}


def alternatives(value: Any) -> tuple[Any, ...]:
    """Return values that a setting may have instead."""
    if isinstance(value, bool | int | float):
        return (not value,) if isinstance(value, bool) else (2 * value or 1, 0)
    if not isinstance(value, str):
        return (["x"],) if isinstance(value, list) else (3,)
    from compositionality.train.verl.configure import ADVANTAGES, DTYPES, LOSS_AGGREGATIONS

    return ("none", "k1", *DTYPES, *ADVANTAGES, *LOSS_AGGREGATIONS)
