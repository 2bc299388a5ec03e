#!/usr/bin/env bash
# Accuracy before and after RL on the hold-out, on deeper compositions and on longer strings.
# Reads models (models=[NAME:PATH,…] or MODEL_PATH) and scaling_task/{holdout,deeper,longer}.parquet. Writes
# scaling_law/results.parquet and the rollouts. Tiny: half a minute a model.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/base-85k/model}
PROBLEMS=${PROBLEMS:-$DATA/@scaling_test}
OUTPUT=${OUTPUT:-$RESULTS/scaling_law$OWN}

run evaluate models="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" \
  ${N_SAMPLES:+n_samples="$N_SAMPLES"} "$@"
