"""TRL's names of settings: what a command answers to a key that it has by another name."""

from typing import Any

from compositionality.validation import keys_of

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
    "fp16": ("model.dtype",),
    "gradient_accumulation_steps": ("trainer.micro_batch_tokens",),
    "gradient_checkpointing": ("model.activation_checkpointing",),
    "learning_rate": ("optim.lr",),
    "load_best_model_at_end": ("trainer.keep_best",),
    "log_completions": ("trainer.samples_every",),
    "logging_steps": ("trainer.log_every",),
    "lora_alpha": ("model.lora.alpha",),
    "lora_r": ("model.lora.rank",),
    "lora_target_modules": ("model.lora.targets",),
    "loss_type": ("algorithm.loss_aggregation",),
    "lr_scheduler_type": ("optim.decay_power",),
    "max_completion_length": ("rollout.max_tokens",),
    "max_grad_norm": ("optim.max_grad_norm",),
    "max_length": ("data.max_length",),
    "max_prompt_length": ("data.max_prompt_tokens",),
    "max_seq_length": ("data.max_length",),
    "max_steps": ("trainer.steps",),
    "model_name_or_path": ("model.path",),
    "num_generations": ("rollout.n",),
    "num_generations_eval": ("trainer.eval_samples",),
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
    "top_k": ("rollout.top_k",),
    "top_p": ("rollout.top_p",),
    "train_dataset": ("data.train_files",),
    "torch_dtype": ("model.dtype",),
    "use_cpu": ("run.device",),
    "use_peft": ("model.lora.rank",),
    "use_vllm": ("rollout.engine",),
    "vllm_gpu_memory_utilization": ("rollout.gpu_memory",),
    "vllm_importance_sampling_cap": ("algorithm.importance_cap",),
    "vllm_mode": ("rollout.engine",),
    "vllm_server_base_url": ("rollout.server_url",),
    "vllm_tensor_parallel_size": ("mesh.tensor",),
    "warmup_ratio": ("optim.warmup_steps",),
    "warmup_steps": ("optim.warmup_steps",),
    "weight_decay": ("optim.weight_decay",),
}
"""TRL's name (GRPOConfig, SFTConfig, ModelConfig) → ours, the first that the settings have: of RL, of SFT."""


def answer_trl(schema: type[Any], key: str) -> str:
    """Return ``here KEY`` for a ``key`` of TRL's that ``schema`` has by another name; else nothing."""
    keys = set(keys_of(schema))
    return next((f"here {ours}" for ours in TRL_NAMES.get(key, ()) if ours in keys), "")
