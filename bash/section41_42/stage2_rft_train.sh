#!/usr/bin/env bash
# Stage 2, iterative RFT, training of iteration $ITERATION (default 0): SFT with verl on the iteration's answers.
# Reads $MODEL_PATH (default as in stage2_rft_create_train_data.sh) and iteration$ITERATION/data.
# Writes $CKPT_DIR/stage2-rft-iteration$ITERATION. Tiny: a minute.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

train_sft "${MODEL_PATH:-$(rft_model "$ITERATION")}" "stage2_level2_rft/iteration$ITERATION/data" \
  "stage2-rft-iteration$ITERATION" "${RFT_SFT[@]}" "$@"
