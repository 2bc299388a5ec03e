#!/usr/bin/env bash
# pass@k for k = 1, 2, 4 … 128 along the training of one size: the base model and each kept checkpoint (RUN/steps). Does RL
# solve more problems, or does it only make single samples better? Also, for each group of problems, the gain in pass@1 for the
# FLOPs of training.
# Reads models and scaling_task/holdout.parquet (DATA). Writes passk-rl-85k, and model folders beside verl's checkpoints.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-[base:$CKPT/base-85k/model,$CKPT/rl-85k/steps]}
PROBLEMS=${PROBLEMS:-$DATA/scaling_task/holdout.parquet}
OUTPUT=${OUTPUT:-$RESULTS/passk-rl-85k$OWN}

run passk models="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" n_samples="${N_SAMPLES:-128}" levels=[] per_level=0 "$@"
