#!/usr/bin/env bash
# pass@k by level for every k up to the profile's n_samples, with paired differences to the first model and the k at which
# curves cross. First prints which differences these sizes can show (plan=true: only this).
# Reads models (models=[NAME:PATH,…] or MODEL_PATH) and the test file of held-out functions. Writes section44/results.parquet,
# problems/ and rollouts/. Tiny: half a minute a model on one core. Stopped at any moment, it continues when run again.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-rft/final}
PROBLEMS=${PROBLEMS:-$DATA/@passk}
OUTPUT=${OUTPUT:-$RESULTS/section44$OWN}

run passk models="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" \
  ${N_SAMPLES:+n_samples="$N_SAMPLES"} "$@"
