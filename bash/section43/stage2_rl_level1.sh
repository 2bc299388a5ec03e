#!/usr/bin/env bash
# Stage 2, RL on string problems of level 1, atoms alone, from the multi-base model. GRPO by the profile's engine, in the
# numbers of section 4.1; no Countdown problem takes part.
# Reads $MODEL_PATH (default: $CKPT_DIR/stage1-multi/final) and string_task/stage2_level1/train.parquet; validates on the
# string problems of section 4.1. Writes $CKPT_DIR/stage2-multi-rl-level1 (final/ and best/). Tiny: a minute on one core.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

train_grpo "${MODEL_PATH:-$(model_of multi-base)}" string_task/stage2_level1/train stage2-multi-rl-level1 \
  "${RL_LEVEL1[@]}" "$@"
