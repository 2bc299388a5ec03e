#!/usr/bin/env bash
# Stage 2, iterative RFT, rollouts of one iteration: the current model answers the problems of a chunk.
# Reads the model of the previous iteration (default: Stage 1's) and a chunk (default: 0). Writes string_task/rft/iteration0/
# rollouts. Tiny: half a minute.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-rft/final}
PROBLEMS=${PROBLEMS:-$DATA/string_task/rft/problems/0.parquet}
OUTPUT=${OUTPUT:-$DATA/string_task/rft/iteration0/rollouts$OWN}

run collect_rollouts model="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" \
  ${N_SAMPLES:+n_samples="$N_SAMPLES"} "$@"
