#!/usr/bin/env bash
# SFT of the base model on one arm's rows (preprocess.sh), without loss on the prompts. trainer.steps_of=RUN: as many updates
# as a finished run; trainer.tokens_of=RUN: as many tokens.
# Reads base and sft-plain/train.parquet. Writes sft-plain (final/ is the model). Tiny: a minute.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/base}
TRAIN_FILES=${TRAIN_FILES:-$DATA/igsm_task/sft-plain/train.parquet}
VAL_FILES=${VAL_FILES:-}
OUTPUT=${OUTPUT:-$CKPT/sft-plain$OWN}

run train_sft model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) trainer.output="$OUTPUT" "$@"
