#!/usr/bin/env bash
# Stage 2, RL on string problems of levels 1 and 2: composition, learnt on strings alone. START=multi (default): from the
# multi-base model. START=string: from the string-base model, which is section 4.1's own run and made by its script.
# Reads $MODEL_PATH (default: $CKPT_DIR/stage1-multi/final or stage1-rft/final) and the profile's string problems of levels
# 1 and 2. Writes $CKPT_DIR/stage2-multi-rl-level1to2 or stage2-rl-level1to2 (final/ and best/ are models). Tiny: a minute
# and a half on one core.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

case ${START:=multi} in
  multi) train_grpo "${MODEL_PATH:-$(model_of multi-base)}" "$LEVEL1TO2" stage2-multi-rl-level1to2 "$@" ;;
  string) script section41_42/stage2_rl_level1to2 "$@" ;;
  *) fail "START=$START: choose multi or string" ;;
esac
