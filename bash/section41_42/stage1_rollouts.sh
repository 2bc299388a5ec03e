#!/usr/bin/env bash
# Stage 1, rollouts: the base model answers problems that show the definitions.
# Reads base and stage1_level1/train.parquet. Writes stage1_level1_rft/rollouts. Tiny: a minute. Paper: 500,000 completions,
# hours on 8 GPUs.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/base}
PROBLEMS=${PROBLEMS:-$DATA/string_task/stage1_level1/train.parquet}
OUTPUT=${OUTPUT:-$DATA/string_task/stage1_level1_rft/rollouts$OWN}

run collect_rollouts model="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" \
  ${N_SAMPLES:+n_samples="$N_SAMPLES"} "$@"
