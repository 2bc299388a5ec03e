#!/usr/bin/env bash
# Stage 2, negative controls: RL on level 2 with a reward that does not depend on right or wrong; RL's gain must not appear here.
# reward.control=shuffled: the rewards of a step permuted across all its completions; random: 1 with the step's share of right
# answers as probability, at the entropy of a run (algorithm.entropy_like=RUN/metrics.jsonl algorithm.entropy_coef=30);
# format: 1 for a readable, finished answer. engine=single only.
# Reads what stage2_rl_level2.sh reads. Writes stage2-rl-level2-control. Tiny: one to two minutes on one core.
# Usage: bash bash/section41_42/stage2_rl_control.sh reward.control=shuffled
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_task/stage2_level2/train.parquet}
VAL_FILES=${VAL_FILES-$DATA/@rl_validation}
OUTPUT=${OUTPUT:-$CKPT/stage2-rl-level2-control$OWN}

run train_grpo model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) trainer.output="$OUTPUT" trainer.keep_best=false "$@"
