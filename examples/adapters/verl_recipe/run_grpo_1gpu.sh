#!/usr/bin/env bash
# GRPO on the string task with verl and vLLM, by default Qwen2.5-1.5B on one GPU of 80 GB.
# Usage: MODEL_PATH=STAGE1_MODEL bash run_grpo_1gpu.sh [key=value of verl …]
set -xeuo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# ---- to adjust
MODEL_PATH=${MODEL_PATH:?a model that knows the single functions: README.md}
DATA_DIR=${DATA_DIR:-data/verl_recipe}
OUTPUT=${OUTPUT:-checkpoints/verl_recipe}
N_GPUS=${N_GPUS:-1} NNODES=${NNODES:-1} TENSOR_PARALLEL=${TENSOR_PARALLEL:-1}
batch=${BATCH:-64} responses=${RESPONSES:-16} # problems of a step, completions of each
max_prompt=1024 max_response=2048
lr=${LR:-2e-6} steps=300
# ----

[[ -f $DATA_DIR/validation.parquet ]] || python3 "$HERE/string_task.py" "$DATA_DIR"

DATA=(
  data.train_files="$DATA_DIR/train.parquet"
  data.val_files="$DATA_DIR/validation.parquet"
  data.train_batch_size="$batch"
  data.max_prompt_length="$max_prompt"
  data.max_response_length="$max_response"
  data.filter_overlong_prompts=True
)
ACTOR=(
  actor_rollout_ref.model.path="$MODEL_PATH"
  actor_rollout_ref.model.use_remove_padding=True
  actor_rollout_ref.model.enable_gradient_checkpointing=True
  actor_rollout_ref.actor.optim.lr="$lr"
  actor_rollout_ref.actor.ppo_mini_batch_size="$batch"
  actor_rollout_ref.actor.use_dynamic_bsz=True
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384
  actor_rollout_ref.actor.use_kl_loss=False
)
ROLLOUT=(
  actor_rollout_ref.rollout.name=vllm
  actor_rollout_ref.rollout.n="$responses"
  actor_rollout_ref.rollout.tensor_model_parallel_size="$TENSOR_PARALLEL"
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6
  actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=True
  actor_rollout_ref.rollout.val_kwargs.do_sample=True
  actor_rollout_ref.rollout.val_kwargs.temperature=1.0
)
REWARD=(
  reward.custom_reward_function.path="$HERE/string_task.py"
  reward.custom_reward_function.name=compute_score
)
TRAINER=(
  algorithm.adv_estimator=grpo
  trainer.n_gpus_per_node="$N_GPUS"
  trainer.nnodes="$NNODES"
  trainer.total_training_steps="$steps"
  trainer.save_freq=50
  trainer.test_freq=25
  trainer.val_before_train=True
  trainer.logger='["console"]'
  trainer.project_name=compositionality
  trainer.experiment_name=string-level2
  trainer.default_local_dir="$OUTPUT"
)

python3 -m verl.trainer.main_ppo "${DATA[@]}" "${ACTOR[@]}" "${ROLLOUT[@]}" "${REWARD[@]}" "${TRAINER[@]}" "$@"
