#!/usr/bin/env bash
# Section 4.3 for one seed, from nothing to the table: the base model, the string problems and Stage 1 by the scripts of
# section 4.1 (what is there is used), Countdown problems, Stage 1 on both, the arms (side by side where there are cores
# for it), accuracy by level. Each step that is there already is skipped; stopped at any moment, it continues when run again.
# Reads $MODEL_PATH (default: the profile's base model; some profiles make their own). Writes $DATA_DIR, $CKPT_DIR,
# $RESULTS_DIR. Time: see README.md.
export SECTION=section43
ARMS=${ARMS:-multi-rl-level1to2 string-rl-level1to2 multi-rl-level1} # the longest first
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

script section41_42/stage0_pretrain "$@"
export BASE_MODEL=${MODEL_PATH:-$BASE_MODEL}
unset MODEL_PATH # from here on every step starts from the model that the steps before it made
script section41_42/stage1_create_problems "$@"
script section41_42/stage1_create_train_data "$@"
script section41_42/stage1_rft "$@"
script section41_42/stage2_create_problems "$@"
script section43/create_countdown_data "$@"
script section43/stage1_collect_train_data "$@"
script section43/stage1_rft "$@"
in_lanes section43/arm "$ARMS multi-base string-base" "$@"
script section43/evaluate "$@"
