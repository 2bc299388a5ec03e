#!/usr/bin/env bash
# pass@k for k = 1, 2, 4 … 128 along the training of one size: the base model, each checkpoint that was kept, the end. Does RL
# add problems that are solved at all, or make single samples better? And for each group of problems: what pass@1 gained for
# the FLOPs of training.
# Reads the base model ($MODEL_PATH), the checkpoints of a run ($TRAINED, a folder) and scaling_task/holdout.parquet (DATA).
# Writes passk-RUN; models of verl's checkpoints beside them.
# Usage: [TRAINED=checkpoints/…/rl-85k] [MODEL_PATH=…] bash bash/scaling_law/passk.sh [key=value …]
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

TRAINED=${TRAINED:-$CKPT/rl-85k}
MODEL_PATH=${MODEL_PATH:-${TRAINED%/*}/base-${TRAINED##*/rl-}/model}
PROBLEMS=${PROBLEMS:-$DATA/scaling_task/holdout.parquet}
OUTPUT=${OUTPUT:-$RESULTS/passk-$(basename "$TRAINED")}
models="'base:$MODEL_PATH'"
for checkpoint in $(printf '%s\n' "$TRAINED"/steps/global_step_* | sort -V); do
  model=$checkpoint/huggingface
  if [[ -d $checkpoint/actor ]]; then # of verl, in shards
    model=$checkpoint/exported
    run export_checkpoint checkpoint="$checkpoint" output="$model"
  fi
  if [[ -d $model ]]; then models+=",'step${checkpoint##*_}:$model'"; fi
done

run passk models="[$models]" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" n_samples=128 levels=[] per_level=0 "$@"
