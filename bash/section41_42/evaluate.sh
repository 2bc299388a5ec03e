#!/usr/bin/env bash
# Accuracy by level, with intervals, of every model that the other scripts have made (or of $MODEL_PATH alone).
# Reads the models and the test files. Writes $RESULTS_DIR/section41_42/accuracy.{json,parquet} and the rollouts behind
# them. Tiny: a minute or two.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

models=()
if [[ -n ${MODEL_PATH:-} ]]; then
  models=("$(basename "$MODEL_PATH")=$MODEL_PATH")
else
  [[ -d $BASE_MODEL ]] && models+=("base=$BASE_MODEL")
  for run in stage1-rft stage2-rl-level1 stage2-rl-level2 stage2-rl-level1to2 "stage2-rft-iteration$((RFT_ITERATIONS - 1))"; do
    [[ -d $CKPT_DIR/$run/final ]] && models+=("$run=$CKPT_DIR/$run/final")
  done
fi
evaluate section41_42 "$@"
