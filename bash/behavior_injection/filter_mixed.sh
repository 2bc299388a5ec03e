#!/usr/bin/env bash
# Problems that an SFT model solves in some completions but not in all: rl.sh on only these trains a mixed arm.
# Reads rollouts (TRAIN_FILES) of igsm_task/rl.parquet (DATA). Writes igsm_task/mixed-plain.parquet. Seconds.
source "$(dirname "$0")/../env.sh"
PROBLEMS=${PROBLEMS:-$DATA/igsm_task/rl.parquet}
TRAIN_FILES=${TRAIN_FILES:-$DATA/igsm_task/mixed-plain}
OUTPUT=${OUTPUT:-$DATA/igsm_task/mixed-plain.parquet}

run filter_problems rollouts="$TRAIN_FILES" problems="$PROBLEMS" output="$OUTPUT" "$@"
