#!/usr/bin/env bash
# Stage 1 on strings and numbers, training data: right completions of two-number problems.
# Reads rollouts (TRAIN_FILES) and their problems (DATA). Writes countdown_task/stage1_level2_rft/data. Takes seconds.
source "$(dirname "$0")/../env.sh"
PROBLEMS=${PROBLEMS:-$DATA/countdown_task/stage1_level2/train.parquet}
TRAIN_FILES=${TRAIN_FILES:-$DATA/countdown_task/stage1_level2_rft/rollouts}
OUTPUT=${OUTPUT:-$DATA/countdown_task/stage1_level2_rft/data}

run filter_rollouts problems="$PROBLEMS" rollouts="$TRAIN_FILES" output="$OUTPUT" "$@"
