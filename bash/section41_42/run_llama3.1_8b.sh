#!/usr/bin/env bash
# RL on level 2 with Llama-3.1-8B-Instruct on a node of 8 × 80 GB, in verl's own words: what PROFILE=paper stage2_rl_level2.sh
# runs (a test holds both to one configuration), in the form of verl's examples, to edit. Not run with this model yet.
# Reads $MODEL_PATH (after Stage 1), $TRAIN_FILES, $VAL_FILES; their usual ones: PROFILE=paper {stage1_rft,stage2_create_problems}.sh
# Writes $OUTPUT. Usage: [MODEL_PATH=…] [N_GPUS=8] [DRY_RUN=1] bash bash/section41_42/run_llama3.1_8b.sh [key=value …]
export PROFILE=paper
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_task/stage2_level2/train.parquet}
VAL_FILES=${VAL_FILES:-$DATA/string_task/stage2_level1to8/test.parquet}
OUTPUT=${OUTPUT:-$CKPT/run_llama3.1_8b$OWN}
batch=16 responses=16 prompt=1024 response=8192

set -x
"$PYTHON" examples/train_grpo.py engine=verl run.device=gpu ${N_GPUS:+run.processes="$N_GPUS"} \
  model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" trainer.output="$OUTPUT" \
  reward.shape=paper algorithm.dynamic_sampling=true trainer.epochs=1 \
  verl.algorithm.adv_estimator=grpo \
  verl.algorithm.use_kl_in_reward=false \
  verl.data.train_batch_size=$batch \
  verl.data.max_prompt_length=$prompt \
  verl.data.max_response_length=$response \
  verl.data.seed=$((SEED + 1)) \
  verl.actor_rollout_ref.model.enable_gradient_checkpointing=true \
  verl.actor_rollout_ref.model.use_remove_padding=true \
  verl.actor_rollout_ref.actor.optim.lr=1e-6 \
  verl.actor_rollout_ref.actor.ppo_mini_batch_size=$batch \
  verl.actor_rollout_ref.actor.use_dynamic_bsz=true \
  verl.actor_rollout_ref.actor.ppo_max_token_len_per_gpu=17408 \
  verl.actor_rollout_ref.actor.loss_agg_mode=token-mean \
  verl.actor_rollout_ref.actor.use_kl_loss=false \
  verl.actor_rollout_ref.actor.entropy_coeff=0.0 \
  verl.actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype=bf16 \
  verl.actor_rollout_ref.actor.fsdp_config.param_offload=true \
  verl.actor_rollout_ref.actor.fsdp_config.optimizer_offload=true \
  verl.actor_rollout_ref.rollout.name=vllm \
  verl.actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
  verl.actor_rollout_ref.rollout.dtype=bfloat16 \
  verl.actor_rollout_ref.rollout.n=$responses \
  verl.actor_rollout_ref.rollout.temperature=1.0 \
  verl.actor_rollout_ref.rollout.gpu_memory_utilization=0.8 \
  "$@" ${DRY_RUN:+--dry-run}
