#!/usr/bin/env bash
# Stage 1 on strings and numbers: SFT of the base model on both kinds of answers, the multi-base model of the tables. The
# string-base model is that of section 4.1 (section41_42/stage1_rft.sh), taught strings only.
# Reads $MODEL_PATH (default: the profile's base model) and string_countdown_task/stage1_rft_data. Writes
# $CKPT_DIR/stage1-multi (final/ is the model). Tiny: half a minute.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

train_sft "${MODEL_PATH:-$BASE_MODEL}" string_countdown_task/stage1_rft_data stage1-multi "${STAGE1_SFT[@]}" "$@"
