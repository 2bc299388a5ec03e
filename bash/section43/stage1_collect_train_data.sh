#!/usr/bin/env bash
# Stage 1 on strings and numbers, training data: the base model answers two-number problems, correct completions are kept
# and joined with the string data of section 4.1.
# Reads $MODEL_PATH (default: the profile's base model), countdown_task/stage1_level2/train.parquet and
# string_task/stage1_level1_rft/data. Writes countdown_task/stage1_level2_rft/{rollouts,data} and
# string_countdown_task/stage1_rft_data/{train,test}.parquet. Tiny: a minute.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

MODEL_PATH=${MODEL_PATH:-$BASE_MODEL}
PROBLEMS=${PROBLEMS:-$DATA_DIR/countdown_task/stage1_level2/train.parquet}
STRING_DATA=${STRING_DATA:-$SEED_DATA_DIR/string_task/stage1_level1_rft/data}
OUTPUT=${OUTPUT:-$DATA_DIR/countdown_task/stage1_level2_rft}

run collect_rollouts experiment=section43/stage1_collect_train_data model="$MODEL_PATH" problems="$PROBLEMS" \
  output="$OUTPUT/rollouts" engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" \
  n_samples="$COUNTDOWN_SAMPLES" "$@"
run filter_rollouts experiment=section43/stage1_collect_train_data problems="$PROBLEMS" \
  rollouts="[$(list "$OUTPUT/rollouts")]" output="$OUTPUT/data" "$@"
run merge_data inputs="[$(list "$STRING_DATA" "$OUTPUT/data")]" output="$DATA_DIR/string_countdown_task/stage1_rft_data" "$@"
