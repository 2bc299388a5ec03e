#!/usr/bin/env bash
# Stage 2, RL on level 2 once more, by verl and vLLM (bash/setup.sh --full): a cross-check of the single-file trainer from
# the same Stage-1 model, on the same problems, with the same numbers. Meant for PROFILE=single: vLLM's CPU build does not
# take the narrow heads of the tiny profile's model.
# Reads what stage2_rl_level2.sh reads. Writes $CKPT_DIR/stage2-rl-level2-verl, which evaluate.sh then shows as
# rl-level2-verl. One GPU: not measured yet.
export STUDY_ENGINE=single ENGINE=verl ROLLOUT_ENGINE="" # in the folders of the study
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODEL_PATH=${MODEL_PATH:-$SEED_CKPT_DIR/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$(files string_task/stage2_level2/train)}
VAL_FILES=${VAL_FILES-$(files $RL_VALIDATION_FILES)}
OUTPUT=${OUTPUT:-$CKPT_DIR/stage2-rl-level2-verl$OF_MODEL}

run train_grpo experiment=section41_42/stage2_rl_level2 engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_files="[$TRAIN_FILES]" data.val_files="[$VAL_FILES]" data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) \
  rollout.engine="$RL_ROLLOUT_ENGINE" trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "$@"
