#!/usr/bin/env bash
# SFT rows of one arm: solutions with the behaviours that the keys inject. All arms use the same problems.
# Reads igsm_task/sft.parquet. Writes sft-plain/train.parquet. Tiny: seconds. parts=4: only the first quarter of the problems.
# Usage: OUTPUT=… bash bash/behavior_injection/preprocess.sh [subgoals=true] [analysis=2] [reflection=0.1] [prompt_orders=4] …
source "$(dirname "$0")/../env.sh"
TRAIN_FILES=${TRAIN_FILES:-$DATA/igsm_task/sft.parquet}
OUTPUT=${OUTPUT:-$DATA/igsm_task/sft-plain}

run write_solutions problems="$TRAIN_FILES" output="$OUTPUT" seed=$((SEED + 1)) "$@"
