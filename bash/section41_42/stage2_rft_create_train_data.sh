#!/usr/bin/env bash
# Stage 2, iterative RFT, training data of iteration $ITERATION (default 0): the current model answers the chunk's
# problems, correct answers are kept.
# Reads $MODEL_PATH (default: the model of the iteration before; for iteration 0 $CKPT_DIR/stage1-rft/final) and chunk
# $ITERATION. Writes stage2_level2_rft/iteration$ITERATION/{rollouts/,data/}; with RFT_BUDGET=rl stage2_level2_rft_matched/….
# Tiny: half a minute.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

chunk=$RFT_DATA/problems/$ITERATION
folder=$RFT_DATA/iteration$ITERATION
collect "${MODEL_PATH:-$(rft_model "$ITERATION")}" "$chunk" "$folder/rollouts" n_samples="$RFT_SAMPLES" "$@"
keep_correct "$chunk" "$folder/rollouts" "$folder/data" $(force_in "$@")
