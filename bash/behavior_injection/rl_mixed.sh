#!/usr/bin/env bash
# RL as in rl.sh, only on problems that the arm's SFT model solves in some samples: of eight completions one to seven are
# right.
# Reads $MODEL_PATH (default: $CKPT_DIR/sft-ARM/final) and igsm_task/{rl,validation}.parquet. Writes
# $DATA_DIR/igsm_task/mixed-ARM{,.parquet} and $CKPT_DIR/rl-ARM-mixed.
# Usage: bash bash/behavior_injection/rl_mixed.sh ARM [key=value …]
export SECTION=behavior_injection
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

arm=$(named "${1:-}" "which arm? One that bash/behavior_injection/sft.sh has trained")
share "$@"
MODEL_PATH=${MODEL_PATH:-$CKPT_DIR/sft-$arm/final}
OUTPUT=${OUTPUT:-$CKPT_DIR/rl-$arm-mixed}
problems=$DATA_DIR/igsm_task/rl.parquet mixed=$DATA_DIR/igsm_task/mixed-$arm

run collect_rollouts experiment="$SECTION/influence" model="$MODEL_PATH" problems="$problems" output="$mixed" \
  engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" n_samples=8 "${@:2}"
run filter_problems rollouts="$mixed" problems="$problems" output="$mixed.parquet" "${@:2}"
with+=(MODEL_PATH="$MODEL_PATH" OUTPUT="$OUTPUT" TRAIN_FILES="$mixed.parquet")
script behavior_injection/rl "$arm" "${@:2}"
