#!/usr/bin/env bash
# Stage 2, iterative RFT, training of iteration $ITERATION (default 0): SFT on the iteration's answers.
# Reads $MODEL_PATH (default as in stage2_rft_create_train_data.sh) and its data. Writes
# $CKPT_DIR/stage2-rft-iteration$ITERATION; with RFT_BUDGET=rl stage2-rft-matched-iteration$ITERATION. Tiny: half a minute.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

train_sft "${MODEL_PATH:-$(rft_model "$ITERATION")}" "$RFT_DATA/iteration$ITERATION/data" \
  "$RFT_RUN-iteration$ITERATION" "${RFT_SFT[@]}" "$@"
