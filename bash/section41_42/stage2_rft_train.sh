#!/usr/bin/env bash
# Stage 2, iterative RFT, training of one iteration: SFT of the current model on its kept completions. trainer.steps_of=RUN
# trainer.part=1/3: a third of the updates of a finished RL run (tokens_of: of its tokens); trainer.batch_of=RUN: as many loss
# tokens per update.
# Reads a model and string_task/rft/iteration0/data. Writes stage2-rft-iteration0. Tiny: half a minute.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$DATA/string_task/rft/iteration0/data/train.parquet}
VAL_FILES=${VAL_FILES-${TRAIN_FILES%/*}/test.parquet}
OUTPUT=${OUTPUT:-$CKPT/stage2-rft-iteration0$OWN}

run train_sft model.path="$MODEL_PATH" data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" \
  data.seed=$((SEED + 1)) trainer.output="$OUTPUT" "$@"
