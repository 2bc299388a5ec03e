#!/usr/bin/env bash
# RL of one size; logs its loss on the hold-out every few steps. algorithm=NAME: one of compositionality/config/algorithm/.
# Reads base-85k/model and scaling_task. Writes rl-85k: metrics.jsonl (the laws are fitted to it) and models. Tiny: 1 to 4 minutes.
# Usage: MODEL_PATH=… OUTPUT=… bash bash/scaling_law/train.sh [algorithm=reinforce_plus_plus] [model.lora.rank=32]
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/base-85k/model}
TRAIN_FILES=${TRAIN_FILES:-$DATA/@scaling_train}
VAL_FILES=${VAL_FILES-$DATA/scaling_task/holdout.parquet}
OUTPUT=${OUTPUT:-$CKPT/rl-85k$OWN}

run train_grpo model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) trainer.output="$OUTPUT" "$@"
