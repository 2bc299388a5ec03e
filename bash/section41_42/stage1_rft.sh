#!/usr/bin/env bash
# Stage 1, rejection fine-tuning: SFT on the kept completions.
# Reads $MODEL_PATH (default: the profile's base model) and stage1_level1_rft/data. Writes $SEED_CKPT_DIR/stage1-rft (final/ is
# the model). Tiny: half a minute; with ENGINE=verl a minute or two.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODEL_PATH=${MODEL_PATH:-$BASE_MODEL}
DATA=${DATA:-$SEED_DATA_DIR/string_task/stage1_level1_rft/data}
OUTPUT=${OUTPUT:-$SEED_CKPT_DIR/stage1-rft}
hold_out "$DATA"

run train_sft experiment=section41_42/stage1_rft engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_file="$DATA/train.parquet" "${held_out[@]}" data.seed=$((SEED + 1)) \
  trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "$@"
