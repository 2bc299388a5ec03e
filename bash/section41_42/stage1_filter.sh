#!/usr/bin/env bash
# Stage 1, training data: right completions. The definitions are removed from the prompts, so that SFT teaches the meaning of each
# name.
# Reads stage1_level1_rft/rollouts (TRAIN_FILES) and their problems (DATA). Writes stage1_level1_rft/data/{train,test}.parquet.
source "$(dirname "$0")/../env.sh"
PROBLEMS=${PROBLEMS:-$DATA/string_task/stage1_level1/train.parquet}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_task/stage1_level1_rft/rollouts}
OUTPUT=${OUTPUT:-$DATA/string_task/stage1_level1_rft/data}

run filter_rollouts problems="$PROBLEMS" rollouts="$TRAIN_FILES" output="$OUTPUT" hide_definitions=true "$@"
