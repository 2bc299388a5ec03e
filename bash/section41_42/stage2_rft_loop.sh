#!/usr/bin/env bash
# Stage 2, iterative RFT as one command: for every chunk, rollouts from the current model → filter → SFT. Every step
# that is there already is skipped, so the command continues where it was stopped.
# Reads $SEED_CKPT_DIR/stage1-rft/final and the chunks. Writes $CKPT_DIR/stage2-rft-iteration{0,1,…}. Tiny: two minutes.
# RFT_BUDGET=rl samples as many completions in all as RL on level 2 does, and as many of a problem, instead of the
# original's smaller number; in $CKPT_DIR/stage2-rft-matched-iteration{0,1,…}. Tiny: four minutes on one core.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

unset MODEL_PATH # each iteration starts from the model before it
export RFT_BUDGET
script section41_42/stage2_rft_create_problems "$@"
for ((iteration = 0; iteration < RFT_ITERATIONS; iteration++)); do
  ITERATION=$iteration script section41_42/stage2_rft_create_train_data "$@"
  ITERATION=$iteration script section41_42/stage2_rft_train "$@"
done
