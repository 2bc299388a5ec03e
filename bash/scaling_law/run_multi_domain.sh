#!/usr/bin/env bash
# PPO on mathematics, code, logic and STEM together, through verl: GAE with a critic, LoRA of rank 32 on seven projections, a KL
# penalty in the reward. Started again, it continues from its last checkpoint.
# Reads $MODEL_PATH and rows in guru's columns or verl's: $TRAIN_FILES and $VAL_FILES unchanged (default: holdout.parquet
# beside the former), or $DATA (files, folders), which examples/prepare_guru.py checks, mixes and splits. Without any of
# them it generates a sample. Without a model the tiny profile makes one, which knows nothing of the domains: that shows
# that everything runs, not what RL does.
# Writes $OUTPUT (metrics.jsonl, steps/, final/) and passk-NAME: pass@k by domain for base model and checkpoints, and the gain
# in pass@1 for the FLOPs.
# Usage: MODEL_PATH=Qwen/Qwen2.5-3B DATA=guru/train N_GPUS=2 bash bash/scaling_law/run_multi_domain.sh [key=value …]
# Keys go to the training; rows:KEY=… to prepare_guru, passk:KEY=… to pass@k.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

# ---- to adjust: the published settings. Any key may follow the command, too.
domains='[math,code,logic,stem]'
batch=8 responses=4 updates=2 # problems of a step, completions of each, updates of a step
max_prompt=2048 max_response=2048
holdout=500 samples=128 # problems for validation and the table; completions of each for pass@k
actor_lr=1e-6 critic_lr=1e-5 warmup=10 critic_alone=5
epochs=3 save_every=10 eval_every=10 keep=3
OUTPUT=${OUTPUT:-$CKPT/rl-domains$OWN}
# ----

PROFILE=${PROFILE%/*}/verl
rows=$DATA/domains/$(basename "$OUTPUT") sample=$DATA/domains/sample
if [[ -z $PROBLEMS ]]; then holdout=24; fi # for the sample
if [[ $PROFILE == paper/* ]]; then MODEL_PATH=${MODEL_PATH:-Qwen/Qwen2.5-7B}; fi
keys=() rows_keys=() passk_keys=()
for word in "$@"; do
  case $word in
    rows:*) rows_keys+=("${word#*:}") ;;
    passk:*) passk_keys+=("${word#*:}") ;;
    *) keys+=("$word") ;;
  esac
done
if [[ -z ${MODEL_PATH:-} ]]; then
  max_prompt=896 max_response=64 # tiny models read characters
  MODEL_PATH=$CKPT/base
  run pretrain_tiny output="$MODEL_PATH" steps=20 seed="$SEED"
fi
if [[ -z ${TRAIN_FILES:-}$PROBLEMS ]]; then
  run make_domain_sample output="$sample" count=24 seed="$TEST_SEED"
fi
if [[ -z ${TRAIN_FILES:-} ]]; then
  run prepare_guru files="${PROBLEMS:-$sample}" output="$rows" domains="$domains" holdout="$holdout" first_share=0.5 \
    order=shuffled seed="$TEST_SEED" "${rows_keys[@]}"
fi
TRAIN_FILES=${TRAIN_FILES:-$rows/train.parquet} first=${TRAIN_FILES#[}
VAL_FILES=${VAL_FILES-$(dirname "${first%%,*}")/holdout.parquet}

run train_grpo model.path="$MODEL_PATH" model.lora.rank=32 model.lora.alpha=64 \
  'model.lora.targets=[q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj]' \
  data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" data.prompts_per_step="$batch" data.seed=$((SEED + 1)) \
  data.max_prompt_tokens="$max_prompt" rollout.max_tokens="$max_response" rollout.n="$responses" \
  rollout.engine=vllm rollout.seed=$((SEED + 1)) \
  algorithm=ppo algorithm.gamma=1.0 algorithm.gae_lambda=0.95 algorithm.updates_per_step="$updates" \
  verl.algorithm.use_kl_in_reward=true verl.algorithm.kl_ctrl.type=adaptive verl.algorithm.kl_ctrl.kl_coef=0.02 \
  verl.algorithm.kl_ctrl.target_kl=0.01 \
  optim.lr="$actor_lr" optim.warmup_steps="$warmup" critic.lr="$critic_lr" critic.alone_steps="$critic_alone" \
  reward.judge_seconds=60 trainer.output="$OUTPUT" trainer.steps=null trainer.epochs="$epochs" \
  trainer.save_every="$save_every" trainer.eval_every="$eval_every" trainer.keep="$keep" "${keys[@]}"
models="['base:$MODEL_PATH','$OUTPUT/steps']"
OUTPUT=$RESULTS/passk-$(basename "$OUTPUT") MODEL_PATH=$models DATA=$VAL_FILES \
  bash bash/scaling_law/passk.sh n_samples="$samples" max_prompt_tokens="$max_prompt" max_tokens="$max_response" \
  "${passk_keys[@]}"
