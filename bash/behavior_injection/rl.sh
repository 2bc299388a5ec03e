#!/usr/bin/env bash
# RL of one arm's SFT model on unseen problems, with reward for right answers only; the same for every arm.
# Reads sft-plain and igsm_task/{rl,validation}.parquet. Writes rl-plain (final/ and best/ are models). Tiny: five minutes on one
# core.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/sft-plain/final}
TRAIN_FILES=${TRAIN_FILES:-$DATA/igsm_task/rl.parquet}
VAL_FILES=${VAL_FILES-$DATA/igsm_task/validation.parquet}
OUTPUT=${OUTPUT:-$CKPT/rl-plain$OWN}

run train_grpo model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) trainer.output="$OUTPUT" "$@"
