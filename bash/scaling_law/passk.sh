#!/usr/bin/env bash
# pass@k for k = 1, 2, 4 … 128 along the training of one size: the base model, each checkpoint that was kept (RUN/steps). Does RL
# add problems that are solved at all, or make single samples better? And for each group of problems: what pass@1 gained for the
# FLOPs of training.
# Reads models and scaling_task/holdout.parquet (DATA). Writes passk-rl-85k; model folders of verl's checkpoints beside them.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-[base:$CKPT/base-85k/model,$CKPT/rl-85k/steps]}
PROBLEMS=${PROBLEMS:-$DATA/scaling_task/holdout.parquet}
OUTPUT=${OUTPUT:-$RESULTS/passk-rl-85k$OWN}

run passk models="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" n_samples="${N_SAMPLES:-128}" levels=[] per_level=0 "$@"
