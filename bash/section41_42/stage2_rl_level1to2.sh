#!/usr/bin/env bash
# Stage 2, RL on levels 1 and 2, mixed one to one. GRPO by the profile's engine.
# Reads $MODEL_PATH (default: $CKPT_DIR/stage1-rft/final) and the profile's level-1-and-2 problems; validates on the profile's
# validation files. Writes $CKPT_DIR/stage2-rl-level1to2 (final/ and best/ are models). Tiny: two minutes on one core; with
# ENGINE=verl five to twelve minutes on two.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

train_grpo "${MODEL_PATH:-$CKPT_DIR/stage1-rft/final}" "$LEVEL1TO2" stage2-rl-level1to2 "$@"
