#!/usr/bin/env bash
# Stage 2, negative controls: RL on level 2 with rewards that do not depend on right or wrong (README.md, Controls).
# Reads what stage2_rl_level2.sh reads. Writes stage2-rl-level2-control. Tiny: two to four minutes on one core.
# Usage: bash bash/section41_42/stage2_rl_control.sh reward.control=shuffled (or random, format); engine=single only
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_task/stage2_level2/train.parquet}
VAL_FILES=${VAL_FILES-$DATA/@rl_validation}
OUTPUT=${OUTPUT:-$CKPT/stage2-rl-level2-control$OWN}

run train_grpo model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) trainer.output="$OUTPUT" trainer.keep_best=false "$@"
