"""Settings by TRL's names (``GRPOConfig``, ``SFTConfig``, ``ModelConfig``), answered by ours."""

from typing import Any

from compositionality.ranges import keys_of

TRL_NAMES: dict[str, tuple[str, ...]] = {
    "beta": ("algorithm.kl_coef",),
    "bf16": ("model.dtype",),
    "dataset_name": ("data.train_files",),
    "epsilon": ("algorithm.clip_low",),
    "epsilon_high": ("algorithm.clip_high",),
    "eval_steps": ("trainer.eval_every",),
    "gradient_accumulation_steps": ("trainer.micro_batch_tokens",),
    "gradient_checkpointing": ("model.activation_checkpointing",),
    "learning_rate": ("optim.lr",),
    "logging_steps": ("trainer.log_every",),
    "lora_alpha": ("model.lora.alpha",),
    "lora_r": ("model.lora.rank",),
    "lora_target_modules": ("model.lora.targets",),
    "loss_type": ("algorithm.loss_aggregation",),
    "max_completion_length": ("rollout.max_tokens",),
    "max_length": ("data.max_length",),
    "max_prompt_length": ("data.max_prompt_tokens",),
    "max_steps": ("trainer.steps",),
    "model_name_or_path": ("model.path",),
    "num_generations": ("rollout.n",),
    "num_iterations": ("algorithm.updates_per_step",),
    "num_train_epochs": ("trainer.epochs",),
    "output_dir": ("trainer.output",),
    "per_device_train_batch_size": ("data.prompts_per_step", "trainer.batch_rows"),
    "report_to": ("trainer.logger",),
    "reward_funcs": ("reward.function",),
    "save_steps": ("trainer.save_every",),
    "save_total_limit": ("trainer.keep",),
    "scale_rewards": ("algorithm.advantage",),
    "seed": ("data.seed",),
    "temperature": ("rollout.temperature",),
    "use_vllm": ("rollout.engine",),
    "warmup_steps": ("optim.warmup_steps",),
    "weight_decay": ("optim.weight_decay",),
}
"""TRL's name → ours, the first that the settings have: those of RL, those of SFT."""


def answer(schema: type[Any], key: str) -> str:
    """Return ``here KEY`` for a ``key`` of TRL's that ``schema`` has by another name; else nothing."""
    keys = set(keys_of(schema))
    return next((f"here {ours}" for ours in TRL_NAMES.get(key, ()) if ours in keys), "")
