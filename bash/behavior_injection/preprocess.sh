#!/usr/bin/env bash
# SFT rows of one arm: solutions of the same problems as for every other arm, with what the keys inject.
# Reads igsm_task/sft.parquet. Writes sft-plain/train.parquet. Tiny: seconds. parts=4: of the first quarter of the problems alone.
# Usage: OUTPUT=… bash bash/behavior_injection/preprocess.sh [subgoals=true] [analysis=2] [reflection=0.1] [prompt_orders=4] …
source "$(dirname "$0")/../env.sh"
TRAIN_FILES=${TRAIN_FILES:-$DATA/igsm_task/sft.parquet}
OUTPUT=${OUTPUT:-$DATA/igsm_task/sft-plain}

run write_solutions problems="$TRAIN_FILES" output="$OUTPUT" seed=$((SEED + 1)) "$@"
