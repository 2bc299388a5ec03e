#!/usr/bin/env bash
# Stage 2, RL on string problems of level 1, atoms alone, from the multi-base model. GRPO by the profile's engine, in the
# numbers of section 4.1; no Countdown problem takes part.
# Reads $MODEL_PATH (default: $SEED_CKPT_DIR/stage1-multi/final) and string_task/stage2_level1/train.parquet; validates on the
# string problems of section 4.1. Writes $CKPT_DIR/stage2-multi-rl-level1 (final/ and best/). Tiny: a minute on one core.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODEL_PATH=${MODEL_PATH:-$SEED_CKPT_DIR/stage1-multi/final}
TRAIN_FILES=${TRAIN_FILES:-$(files string_task/stage2_level1/train)}
VAL_FILES=${VAL_FILES-$(files $RL_VALIDATION_FILES)}
OUTPUT=${OUTPUT:-$CKPT_DIR/stage2-multi-rl-level1$OF_MODEL}

run train_grpo experiment=section43/stage2_rl_level1 engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_files="[$TRAIN_FILES]" data.val_files="[$VAL_FILES]" data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) \
  rollout.engine="$RL_ROLLOUT_ENGINE" trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "$@"
