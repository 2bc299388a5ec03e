#!/usr/bin/env bash
# Accuracy by level, with intervals, of every model that the other scripts have made (or of $MODEL_PATH alone).
# Reads the models and the test files. Writes $RESULTS_DIR/section41_42/accuracy.{json,parquet} and the rollouts behind
# them. Tiny: a minute or two.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

models=()
add() { if [[ -d $2 || -n ${DRY_RUN:-} ]]; then models+=("$1:$2"); fi; }
if [[ -n ${MODEL_PATH:-} ]]; then
  add "${MODEL_NAME:-model}" "$MODEL_PATH"
else
  add base "$BASE_MODEL"
  add stage1 "$CKPT_DIR/stage1-rft/final"
  add rl-level1 "$CKPT_DIR/stage2-rl-level1/final"
  add rl-level2 "$CKPT_DIR/stage2-rl-level2/final"
  add rl-level1to2 "$CKPT_DIR/stage2-rl-level1to2/final"
  add rft "$(rft_model "$RFT_ITERATIONS")"
fi
evaluate section41_42 "$(IFS=,; echo "${models[*]}")" "$@"
