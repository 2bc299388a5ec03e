#!/usr/bin/env bash
# Stage 2, RL on string problems of levels 1 and 2: composition, learnt on strings alone. START=multi (default): from the
# multi-base model. START=string: from the string-base model, which is section 4.1's own run and made by its script.
# Reads $MODEL_PATH (default: $SEED_CKPT_DIR/stage1-multi/final or stage1-rft/final) and the profile's string problems of levels
# 1 and 2. Writes $CKPT_DIR/stage2-multi-rl-level1to2 or stage2-rl-level1to2 (final/ and best/ are models). Tiny: a minute
# and a half on one core.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

case ${START:=multi} in
  multi) ;;
  string) script section41_42/stage2_rl_level1to2 "$@" && exit ;;
  *) fail "START=$START: choose multi or string" ;;
esac
MODEL_PATH=${MODEL_PATH:-$SEED_CKPT_DIR/stage1-multi/final}
TRAIN_FILES=${TRAIN_FILES:-$(files $STRING_TRAIN_LEVEL1TO2)}
VAL_FILES=${VAL_FILES-$(files $RL_VALIDATION_FILES)}
OUTPUT=${OUTPUT:-$CKPT_DIR/stage2-multi-rl-level1to2$OF_MODEL}

run train_grpo experiment=section43/stage2_rl_level1to2 engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_files="[$TRAIN_FILES]" data.val_files="[$VAL_FILES]" data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) \
  rollout.engine="$RL_ROLLOUT_ENGINE" trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "$@"
