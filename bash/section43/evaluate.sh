#!/usr/bin/env bash
# Accuracy on Countdown by level, with intervals clustered by problem: the mean of several completions of each problem.
# Reads models (models=[NAME:PATH,…] or MODEL_PATH) and countdown_task/test*.parquet. Writes section43/{results.parquet,training.json}
# and the rollouts behind them. Tiny: a minute a model. DATA=data/STUDY/seed0/@countdown_validation: on the validation files.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-multi/final}
PROBLEMS=${PROBLEMS:-$DATA/@countdown_test}
OUTPUT=${OUTPUT:-$RESULTS/section43$OWN}

run evaluate models="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" \
  ${N_SAMPLES:+n_samples="$N_SAMPLES"} "$@"
