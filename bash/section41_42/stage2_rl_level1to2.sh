#!/usr/bin/env bash
# Stage 2, RL on levels 1 and 2, mixed one to one. GRPO by the profile's engine.
# Reads $MODEL_PATH (default: $SEED_CKPT_DIR/stage1-rft/final) and the profile's level-1-and-2 problems; validates on the profile's
# validation files. Writes $CKPT_DIR/stage2-rl-level1to2 (final/ and best/ are models). Tiny: two minutes on one core; with
# ENGINE=verl five to twelve minutes on two.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODEL_PATH=${MODEL_PATH:-$SEED_CKPT_DIR/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$(files $STRING_TRAIN_LEVEL1TO2)}
VAL_FILES=${VAL_FILES-$(files $RL_VALIDATION_FILES)}
OUTPUT=${OUTPUT:-$CKPT_DIR/stage2-rl-level1to2$OF_MODEL}

run train_grpo experiment=section41_42/stage2_rl_level1to2 engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_files="[$TRAIN_FILES]" data.val_files="[$VAL_FILES]" data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) \
  rollout.engine="$RL_ROLLOUT_ENGINE" trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "$@"
