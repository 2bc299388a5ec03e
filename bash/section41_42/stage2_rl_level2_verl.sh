#!/usr/bin/env bash
# Stage 2, RL on level 2 once more, by verl and vLLM (bash/setup.sh --full): a cross-check of the single-file trainer from
# the same Stage-1 model, on the same problems, with the same numbers. Meant for PROFILE=single: vLLM's CPU build does not
# take the narrow heads of the tiny profile's model.
# Reads what stage2_rl_level2.sh reads. Writes $CKPT_DIR/stage2-rl-level2-verl, which evaluate.sh then shows as
# rl-level2-verl. One GPU: not measured yet.
export STUDY_ENGINE=single ENGINE=verl
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

train_grpo "${MODEL_PATH:-$CKPT_DIR/stage1-rft/final}" string_task/stage2_level2/train stage2-rl-level2-verl "$@"
