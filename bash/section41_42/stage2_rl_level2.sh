#!/usr/bin/env bash
# Stage 2, RL on level 2: compositions of two functions. GRPO by the profile's engine.
# Reads $MODEL_PATH (default: $CKPT_DIR/stage1-rft/final) and stage2_level2/train.parquet; validates on the profile's
# validation files. Writes $CKPT_DIR/stage2-rl-level2 (final/ and best/ are models). Tiny: two minutes on one core; with
# ENGINE=verl five to twelve minutes on two.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

train_grpo "${MODEL_PATH:-$CKPT_DIR/stage1-rft/final}" string_task/stage2_level2/train stage2-rl-level2 "$@"
