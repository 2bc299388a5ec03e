#!/usr/bin/env bash
# Sections 4.1 and 4.2, from nothing to the table: problems, Stage 1, RL on level 1, level 2 and both, iterative RFT,
# accuracy by level. Each step that is there already is skipped; stopped at any moment, it continues when run again.
# Reads $MODEL_PATH (default: the profile's base model; the tiny profile makes its own). Writes $DATA_DIR, $CKPT_DIR,
# $RESULTS_DIR. Tiny: about half an hour on 2 cores. Paper: days on a node of 8 GPUs.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

section=section41_42
script $section/stage0_pretrain "$@"
export BASE_MODEL=${MODEL_PATH:-$BASE_MODEL}
unset MODEL_PATH # from here on every step starts from the model that the steps before it made
script $section/stage1_create_problems "$@"
script $section/stage1_create_train_data "$@"
script $section/stage1_rft "$@"
script $section/stage2_create_problems "$@"
script $section/stage2_rl_level1 "$@"
script $section/stage2_rl_level2 "$@"
script $section/stage2_rl_level1to2 "$@"
script $section/stage2_rft_loop "$@"
script $section/evaluate "$@"
