#!/usr/bin/env bash
# Stage 2, RL on level 1: single functions, no composition. GRPO with the profile's engine.
# Reads the Stage-1 model and stage2_level1/train.parquet. Writes stage2-rl-level1 (final/ and best/ are models). Tiny: two minutes
# on one core; tiny/verl: five to twelve minutes on two.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_task/stage2_level1/train.parquet}
VAL_FILES=${VAL_FILES-$DATA/@rl_validation}
OUTPUT=${OUTPUT:-$CKPT/stage2-rl-level1$OWN}

run train_grpo model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) trainer.output="$OUTPUT" "$@"
