#!/usr/bin/env bash
# Accuracy by level, with intervals, of models (models=[NAME:PATH,…] or MODEL_PATH), one completion of each problem.
# Reads models and the test files. Writes section41_42/{results.parquet,training.json} and the rollouts behind them. Tiny: half a minute
# a model. DATA=data/STUDY/seed0/@validation: on the validation files.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-rft/final}
PROBLEMS=${PROBLEMS:-$DATA/@test}
OUTPUT=${OUTPUT:-$RESULTS/section41_42$OWN}

run evaluate models="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" \
  ${N_SAMPLES:+n_samples="$N_SAMPLES"} "$@"
