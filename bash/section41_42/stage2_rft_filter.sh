#!/usr/bin/env bash
# Stage 2, iterative RFT, training data of one iteration: right completions. max_correct_ratio=1.0 drops problems that are always
# solved (the paper's filter), null none.
# Reads rollouts (TRAIN_FILES) and their problems (DATA). Writes string_task/rft/iteration0/data/{train,test}.parquet. Takes seconds.
source "$(dirname "$0")/../env.sh"
PROBLEMS=${PROBLEMS:-$DATA/string_task/rft/problems/0.parquet}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_task/rft/iteration0/rollouts}
OUTPUT=${OUTPUT:-$DATA/string_task/rft/iteration0/data}

run filter_rollouts problems="$PROBLEMS" rollouts="$TRAIN_FILES" output="$OUTPUT" "$@"
