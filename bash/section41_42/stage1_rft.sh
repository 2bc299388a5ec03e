#!/usr/bin/env bash
# Stage 1, rejection fine-tuning: SFT on the kept completions.
# Reads base and stage1_level1_rft/data. Writes stage1-rft (final/ is the model). Tiny: half a minute; tiny/verl: two minutes.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/base}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_task/stage1_level1_rft/data/train.parquet}
VAL_FILES=${VAL_FILES-${TRAIN_FILES%/*}/test.parquet}
OUTPUT=${OUTPUT:-$CKPT/stage1-rft$OWN}

run train_sft model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) trainer.output="$OUTPUT" "$@"
