"""All hooks by which verl reaches our code; test_verl_hooks.py lists the names of verl that this code needs.

The calls of GRPO:

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
"""Entry points in pyproject.toml: imported in every process that imports verl or starts vLLM; only a CPU feels them."""
