#!/usr/bin/env bash
# Stage 2, RL on string problems of levels 1 and 2 from the multi-base model: composition learnt on strings only; sizes as in 4.1.
# Reads stage1-multi and string problems. Writes stage2-multi-rl-level1to2 ({final,best}: models). Tiny: 90 seconds on one core.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-multi/final}
TRAIN_FILES=${TRAIN_FILES:-$DATA/@level1to2}
VAL_FILES=${VAL_FILES-$DATA/@rl_validation}
OUTPUT=${OUTPUT:-$CKPT/stage2-multi-rl-level1to2$OWN}

run train_grpo model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) trainer.output="$OUTPUT" "$@"
