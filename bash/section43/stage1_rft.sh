#!/usr/bin/env bash
# Stage 1 on strings and numbers: SFT of the base model on both kinds of completions, the multi-base model of the tables.
# The string-base model is that of section 4.1 (section41_42/stage1_rft.sh), taught strings only.
# Reads $MODEL_PATH (default: the profile's base model) and string_countdown_task/stage1_rft_data. Writes
# $SEED_CKPT_DIR/stage1-multi (final/ is the model). Tiny: half a minute.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODEL_PATH=${MODEL_PATH:-$BASE_MODEL}
DATA=${DATA:-$DATA_DIR/string_countdown_task/stage1_rft_data}
OUTPUT=${OUTPUT:-$SEED_CKPT_DIR/stage1-multi}
hold_out "$DATA"

run train_sft experiment=section43/stage1_rft engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_file="$DATA/train.parquet" "${held_out[@]}" data.seed=$((SEED + 1)) \
  trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "$@"
