#!/usr/bin/env bash
# Stage 2, iterative RFT as one command: for every chunk, rollouts from the current model → filter → SFT. Every step
# that is there already is skipped, so the command continues where it was stopped.
# Reads $SEED_CKPT_DIR/stage1-rft/final and the chunks; metrics of RL on level 2 where they tell its budget. Writes
# $CKPT_DIR/stage2-$RFT-iteration{0,1,…}; RFT is rft, rft-matched (completions) or rft-$RFT_BUDGET. Tiny: one to six minutes.
#   RFT_BUDGET  original (default): $RFT_PROMPTS problems an iteration, $RFT_SAMPLES answers of each. All others
#               $RFT_MATCHED_SAMPLES answers of each, and what they have in common with RL on level 2 in all iterations:
#               problems; completions; or, with as many completions, the updates or the tokens that are trained on
#   RFT_FILTER  all: every correct answer is kept; paper: none of a problem whose answers are all correct. Default: the profile's
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

unset MODEL_PATH # each iteration starts from the model before it
export RFT
script section41_42/stage2_rft_create_problems "$@"
for ((iteration = 0; iteration < RFT_ITERATIONS; iteration++)); do
  ITERATION=$iteration script section41_42/stage2_rft_create_train_data "$@"
  ITERATION=$iteration script section41_42/stage2_rft_train "$@"
done
