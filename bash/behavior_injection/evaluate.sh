#!/usr/bin/env bash
# Greedy accuracy by level, with intervals, on levels trained on and on harder ones.
# Reads models (models=[NAME:PATH,…] or MODEL_PATH) and igsm_task/test*.parquet. Writes behavior_injection/{results.parquet,training.json}
# and the rollouts behind them. Tiny: half a minute a model.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/base}
PROBLEMS=${PROBLEMS:-$DATA/@igsm_test}
OUTPUT=${OUTPUT:-$RESULTS/behavior_injection$OWN}

run evaluate models="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" \
  ${N_SAMPLES:+n_samples="$N_SAMPLES"} temperature=0 "$@"
