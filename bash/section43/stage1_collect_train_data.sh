#!/usr/bin/env bash
# Stage 1 on strings and numbers, training data: the base model answers two-number problems, correct answers are kept and
# joined with the string data of section 4.1.
# Reads $MODEL_PATH (default: the profile's base model), countdown_task/stage1_level2/train.parquet and
# string_task/stage1_level1_rft/data. Writes countdown_task/stage1_level2_rft/{rollouts,data} and
# string_countdown_task/stage1_rft_data/{train,test}.parquet. Tiny: a minute.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

data=countdown_task/stage1_level2
collect "${MODEL_PATH:-$BASE_MODEL}" $data/train ${data}_rft/rollouts n_samples="$COUNTDOWN_SAMPLES" "$@"
keep_correct $data/train ${data}_rft/rollouts ${data}_rft/data "${COUNTDOWN_FILTER[@]}" $(force_in "$@")
step merge_data "inputs=[$DATA_DIR/string_task/stage1_level1_rft/data,$DATA_DIR/${data}_rft/data]" \
  output="$DATA_DIR/string_countdown_task/stage1_rft_data" $(force_in "$@")
