#!/usr/bin/env bash
# Stage 1, rejection fine-tuning: SFT on the kept answers.
# Reads $MODEL_PATH (default: the profile's base model) and stage1_level1_rft/data. Writes $CKPT_DIR/stage1-rft (final/ is
# the model). Tiny: half a minute; with ENGINE=verl a minute or two.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

train_sft "${MODEL_PATH:-$BASE_MODEL}" string_task/stage1_level1_rft/data stage1-rft "${STAGE1_SFT[@]}" "$@"
