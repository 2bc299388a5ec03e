#!/usr/bin/env bash
# Did RL on strings work at all? One completion of each string test problem of the trained functions (of all functions, if none
# are held out).
# Reads models (models=[NAME:PATH,…] or MODEL_PATH) and the test files. Writes section43-strings/{results.parquet,training.json}.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-multi/final}
PROBLEMS=${PROBLEMS:-$DATA/@test_trained}
OUTPUT=${OUTPUT:-$RESULTS/section43-strings$OWN}

run evaluate models="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" \
  ${N_SAMPLES:+n_samples="$N_SAMPLES"} "$@"
