#!/usr/bin/env bash
# Stage 2, iterative RFT, training of one iteration: SFT of the current model on its kept completions. From a finished RL run:
# trainer.steps_of=RUN (or tokens_of) trainer.part=1/3 takes the length, trainer.batch_of=RUN the loss tokens per update.
# Reads a model and string_task/rft/iteration0/data. Writes stage2-rft-iteration0. Tiny: half a minute.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_task/rft/iteration0/data/train.parquet}
VAL_FILES=${VAL_FILES-${TRAIN_FILES%/*}/test.parquet}
OUTPUT=${OUTPUT:-$CKPT/stage2-rft-iteration0$OWN}

run train_sft model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) trainer.output="$OUTPUT" "$@"
