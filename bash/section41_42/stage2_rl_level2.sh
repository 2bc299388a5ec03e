#!/usr/bin/env bash
# Stage 2, RL on level 2: compositions of two functions. GRPO by the profile's engine.
# Reads $MODEL_PATH (default: $SEED_CKPT_DIR/stage1-rft/final) and stage2_level2/train.parquet; validates on the profile's
# validation files. Writes $CKPT_DIR/stage2-rl-level2 (final/ and best/ are models). Tiny: two minutes on one core; with
# ENGINE=verl five to twelve minutes on two.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODEL_PATH=${MODEL_PATH:-$SEED_CKPT_DIR/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$(files string_task/stage2_level2/train)}
VAL_FILES=${VAL_FILES-$(files $RL_VALIDATION_FILES)}
OUTPUT=${OUTPUT:-$CKPT_DIR/stage2-rl-level2$OF_MODEL}

run train_grpo experiment=section41_42/stage2_rl_level2 engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_files="[$TRAIN_FILES]" data.val_files="[$VAL_FILES]" data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) \
  rollout.engine="$RL_ROLLOUT_ENGINE" trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "$@"
