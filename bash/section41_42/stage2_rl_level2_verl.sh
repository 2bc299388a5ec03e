#!/usr/bin/env bash
# Stage 2, RL on level 2 repeated with verl and vLLM (bash/setup.sh --full) at the sizes of PROFILE: a cross-check of the
# single-file trainer. For PROFILE=single: vLLM's CPU build does not support the narrow heads of the tiny profile's model.
# Reads what stage2_rl_level2.sh reads. Writes stage2-rl-level2-verl. One GPU: not measured yet.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_task/stage2_level2/train.parquet}
VAL_FILES=${VAL_FILES-$DATA/string_task/validation_heldout.parquet}
OUTPUT=${OUTPUT:-$CKPT/stage2-rl-level2-verl$OWN}

run train_grpo model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) trainer.output="$OUTPUT" profile="${PROFILE%/*}/verl" "$@"
