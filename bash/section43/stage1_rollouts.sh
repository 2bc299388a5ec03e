#!/usr/bin/env bash
# Stage 1 on strings and numbers, rollouts: the base model answers two-number problems.
# Reads base and countdown_task/stage1_level2/train.parquet. Writes countdown_task/stage1_level2_rft/rollouts. Tiny: a minute.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/base}
PROBLEMS=${PROBLEMS:-$DATA/countdown_task/stage1_level2/train.parquet}
OUTPUT=${OUTPUT:-$DATA/countdown_task/stage1_level2_rft/rollouts$OWN}

run collect_rollouts model="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" \
  ${N_SAMPLES:+n_samples="$N_SAMPLES"} "$@"
