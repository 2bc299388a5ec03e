"""All hooks by which verl reaches our code, and the names of verl on which that code depends. The calls of GRPO:

launch.run_trainer → train.launch.guard → grpo_trainer.main → verl's run_ppo → Ray: TaskRunner.run
  VerlGrpoTrainer.fit (verl's loop)
    _next_train_batch → PromptStream.take
    SeededSingleTurn.run, on a CPU GroupWorker._run_prompt → vLLM
      VerdictRewardManager.run_single or .score → reward.judge
    GenerationBatches.sample → _terminal_eviction_reasons; too few groups: _next_train_batch
    raft_advantage (verl has the others); _update_actor → on_policy_loss, log_probs.cross_entropy
    step → metrics.log_completions; _compute_metrics
    _validate → record_score, prune; _save_checkpoint → Seal.on_save
SFT: launch → guard → torchrun (on a cluster by sft.train_on_nodes) → VerlSftTrainer.fit → ChatRows, Checkpoints
Every process: metrics.install, and critic.install with a critic; on a CPU cpu_platform and vllm_cpu first
"""

VERL = "0.9.1"
"""The release whose names these are."""
HERE = "compositionality.train.verl"
TRAINER, SEEDED_LOOP = "compositionality", "seeded_single_turn"
ON_POLICY, RAFT = "on_policy", "raft"
"""Entries of ours in verl's registries: of trainers, agent loops, losses, advantages."""

GRPO_KEYS = {
    "actor_rollout_ref.model.external_lib": f"{HERE}.extensions",  # imported where the model's configuration is built
    "actor_rollout_ref.rollout.agent.default_agent_loop": SEEDED_LOOP,
    "reward.reward_manager.source": "importlib",
    "reward.reward_manager.module.path": f"pkg://{HERE}.reward_manager",
    "reward.reward_manager.name": "VerdictRewardManager",
    "trainer.checkpoint_callback_class": f"{HERE}.trainer.Seal",
    "trainer.v1.trainer_mode": TRAINER,
    "trainer.v1.sampler.custom_sampler.path": f"pkg://{HERE}.replay",
    "trainer.v1.sampler.custom_sampler.name": "GenerationBatches",
}
GRPO_CPU_KEYS = {"actor_rollout_ref.rollout.agent.agent_loop_manager_class": f"{HERE}.group_loop.GroupManager"}
SFT_KEYS = {
    "model.external_lib": f"{HERE}.log_probs",
    "data.custom_cls.path": f"pkg://{HERE}.sft_rows",
    "data.custom_cls.name": "ChatRows",
}
"""verl's keys that name code of ours. Those of the data and the model are part of what a run is recognised by."""

CPU_MODULE, CRITIC_MODULE = f"{HERE}.cpu_platform", f"{HERE}.critic"
EVERY_MODULE = f"{HERE}.metrics"
"""Imported by verl in every process, by VERL_USE_EXTERNAL_MODULES of the launcher: on a CPU; with a critic; always."""
ENTRY_POINTS = {"verl.plugins": CPU_MODULE, "vllm.general_plugins": f"{HERE}.vllm_cpu:keep_weights"}
"""Of pyproject.toml: imported in every process that imports verl or starts vLLM; without effect but on a CPU."""


SUBCLASSES = {
    "extensions.SeededSingleTurn": "rollout_config run",
    "group_loop.GroupWorker": "_run_prompt config llm_client rollout_config tokenizer",
    "group_loop.GroupManager": "agent_loop_workers_class",
    "grpo_trainer.TaskRunner": "run",
    "replay.GenerationBatches": (
        "_clear_groups _evict_terminal_groups _materialize_batch _sampleable_terminal_keys "
        "_sync_metadata_from_transfer_queue _terminal_eviction_reasons failure_keys finished_keys partitions "
        "pending_keys poll_interval refill_fn running_keys sample"
    ),
    "reward_manager.VerdictRewardManager": "run_single tokenizer",
    "sft_trainer.Checkpoints": (
        "_load_dataloader_state default_local_dir load_checkpoint rank resume_from_path resume_global_step "
        "save_checkpoint"
    ),
    "sft_trainer.VerlSftTrainer": (
        "_build_ckpt_handler _build_dataloader _get_lora_train_meta _init_engine ckpt_handler config device_name "
        "engine optimizer_config resume_global_step steps_per_epoch total_training_steps train_dataloader "
        "train_sampler training_client val_dataloader"
    ),
    "trainer.VerlGrpoTrainer": (
        "_compute_metrics _compute_values _init_dataloader _next_train_batch _save_checkpoint _update_actor "
        "_val_metrics_update _validate config global_steps logger on_train_begin step tokenizer "
        "total_training_steps train_dataloader train_dataset val_dataset"
    ),
    "trainer.Seal": "config on_save",
}
"""Classes of ours with a base in verl → the names of that base which they override or use.

All but CpuPlatform: its base is an interface of abstract methods, of which Python itself names a missing one.
"""
REPLACED = (
    "verl.utils.tracking.FileLogger",
    "verl.utils.tracking.Tracking.__init__",
    "verl.utils.tracking.ValidationGenerationsLogger.log_generations_to_wandb",
    "verl.utils.tracking.ValidationGenerationsLogger.log_generations_to_tensorboard",
    "verl.utils.model.load_valuehead_model",
    "verl.utils.torch_functional.get_constant_schedule_with_warmup",
    "verl.utils.torch_functional.FLAH_ATTN_CROSS_ENTROPY_LOSS_AVAILABLE",
    "verl.trainer.main_ppo.TaskRunnerV1.__ray_metadata__",
    "verl.trainer.ppo.v1.agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__",
    "verl.workers.rollout.llm_server.LLMServerClient._acquire_server",
    "verl.workers.rollout.llm_server.LLMServerClient._release_server",
)
"""Names of verl that we replace, or use from outside, although no interface promises them."""
