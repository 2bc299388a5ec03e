#!/usr/bin/env bash
# RL of one arm's SFT model on problems that it has not seen, rewards for right answers alone; the same for every arm.
# Reads $MODEL_PATH (default: $CKPT_DIR/sft-ARM/final) and igsm_task/{rl,validation}.parquet. Writes $CKPT_DIR/rl-ARM (final/
# and best/ are models). Tiny: five minutes on one core.
# Usage: bash bash/behavior_injection/rl.sh ARM [key=value …]
export SECTION=behavior_injection
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

arm=$(named "${1:-}" "which arm? One that bash/behavior_injection/sft.sh has trained")
MODEL_PATH=${MODEL_PATH:-$CKPT_DIR/sft-$arm/final}
TRAIN_FILES=${TRAIN_FILES:-$(files igsm_task/rl)}
VAL_FILES=${VAL_FILES-$(files igsm_task/validation)}
OUTPUT=${OUTPUT:-$CKPT_DIR/rl-$arm$OF_MODEL}

run train_grpo experiment="$SECTION/rl" engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_files="[$TRAIN_FILES]" data.val_files="[$VAL_FILES]" data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) \
  rollout.engine="$RL_ROLLOUT_ENGINE" trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "${@:2}"
