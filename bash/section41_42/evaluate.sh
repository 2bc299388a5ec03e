#!/usr/bin/env bash
# Accuracy by level, with intervals, of every model that the other scripts have made (or of $MODEL_PATH alone).
# Reads the models and the test files; answers that arm.sh has collected are used as they are.
# Writes $RESULTS_DIR/section41_42/accuracy.{json,parquet} and the rollouts behind them. Tiny: half a minute a model.
# EVALUATE_ON=validation: on the validation files, in $RESULTS_DIR/section41_42-validation.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

models=$(models_there base stage1 rl-level1 rl-level2 rl-level1to2 rl-level2-verl rft rft-matched rl-level2-shuffled \
  rl-level2-format)
evaluate section41_42 "$models" "$@"
