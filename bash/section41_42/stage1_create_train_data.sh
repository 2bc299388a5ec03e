#!/usr/bin/env bash
# Stage 1, training data: the base model answers with the definitions in sight; correct completions are kept and the
# definitions taken out of their prompts, so that the next step must learn what each name means.
# Reads $MODEL_PATH (default: the profile's base model) and stage1_level1/train.parquet.
# Writes stage1_level1_rft/{rollouts/,data/{train,test}.parquet}. Tiny: a minute. Paper: 500,000 completions, hours on 8 GPUs.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

MODEL_PATH=${MODEL_PATH:-$BASE_MODEL}
PROBLEMS=${PROBLEMS:-$SEED_DATA_DIR/string_task/stage1_level1/train.parquet}
OUTPUT=${OUTPUT:-$SEED_DATA_DIR/string_task/stage1_level1_rft}

run collect_rollouts experiment=section41_42/stage1_create_train_data model="$MODEL_PATH" problems="$PROBLEMS" \
  output="$OUTPUT/rollouts" engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" \
  n_samples="$RFT_STAGE1_SAMPLES" "$@"
run filter_rollouts experiment=section41_42/stage1_create_train_data problems="$PROBLEMS" \
  rollouts="[$(list "$OUTPUT/rollouts")]" output="$OUTPUT/data" hide_definitions=true "$@"
