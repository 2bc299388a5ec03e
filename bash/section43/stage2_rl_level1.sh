#!/usr/bin/env bash
# Stage 2, RL on string problems of level 1 (single functions only) from the multi-base model, with the sizes of section 4.1.
# Reads stage1-multi and string problems. Writes stage2-multi-rl-level1 (final/ and best/ are models). Tiny: a minute and a half
# on one core.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-multi/final}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_task/stage2_level1/train.parquet}
VAL_FILES=${VAL_FILES-$DATA/@rl_validation}
OUTPUT=${OUTPUT:-$CKPT/stage2-multi-rl-level1$OWN}

run train_grpo model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) trainer.output="$OUTPUT" "$@"
