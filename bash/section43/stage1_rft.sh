#!/usr/bin/env bash
# Stage 1 on strings and numbers: SFT of the base model on both kinds of completions gives the multi-base model of the tables. The
# string-base model comes from section 4.1 (section41_42/stage1_rft.sh), trained on strings only.
# Reads base and string_countdown_task/stage1_rft_data. Writes stage1-multi (final/ is the model). Tiny: half a minute.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/base}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_countdown_task/stage1_rft_data/train.parquet}
VAL_FILES=${VAL_FILES-${TRAIN_FILES%/*}/test.parquet}
OUTPUT=${OUTPUT:-$CKPT/stage1-multi$OWN}

run train_sft model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) trainer.output="$OUTPUT" "$@"
