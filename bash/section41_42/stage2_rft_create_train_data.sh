#!/usr/bin/env bash
# Stage 2, iterative RFT, training data of iteration $ITERATION (default 0): the current model answers the chunk's
# problems, correct completions are kept.
# Reads $MODEL_PATH (default: the model of the iteration before; for iteration 0 $SEED_CKPT_DIR/stage1-rft/final) and chunk
# $ITERATION. Writes stage2_level2_$RFT/iteration$ITERATION/{rollouts/,data/} (_ for -). Tiny: half a minute.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

before=$CKPT_DIR/stage2-$RFT-iteration$((ITERATION - 1))/final
if ((ITERATION == 0)); then before=$SEED_CKPT_DIR/stage1-rft/final; fi
MODEL_PATH=${MODEL_PATH:-$before}
folder=$DATA_DIR/string_task/stage2_level2_${RFT//-/_}
PROBLEMS=${PROBLEMS:-$folder/problems/$ITERATION.parquet}
OUTPUT=${OUTPUT:-$folder/iteration$ITERATION}

run collect_rollouts experiment=section41_42/stage2_rft_create_train_data model="$MODEL_PATH" problems="$PROBLEMS" \
  output="$OUTPUT/rollouts" engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" \
  n_samples="$RFT_SAMPLES" "$@"
run filter_rollouts experiment=section41_42/stage2_rft_create_train_data problems="$PROBLEMS" \
  rollouts="[$(list "$OUTPUT/rollouts")]" output="$OUTPUT/data" "${rft_filter[@]}" "$@"
