#!/usr/bin/env bash
# Stage 2, iterative RFT, training of iteration $ITERATION (default 0): SFT on the iteration's completions.
# Reads $MODEL_PATH (default as in stage2_rft_create_train_data.sh) and its data. Writes
# $CKPT_DIR/stage2-$RFT-iteration$ITERATION. RFT_BUDGET=updates or tokens: as long as RL on level 2 has trained, divided by
# the iterations; else the profile's epochs. Tiny: half a minute.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

before=$CKPT_DIR/stage2-$RFT-iteration$((ITERATION - 1))/final
if ((ITERATION == 0)); then before=$SEED_CKPT_DIR/stage1-rft/final; fi
MODEL_PATH=${MODEL_PATH:-$before}
DATA=${DATA:-$DATA_DIR/string_task/stage2_level2_${RFT//-/_}/iteration$ITERATION/data}
OUTPUT=${OUTPUT:-$CKPT_DIR/stage2-$RFT-iteration$ITERATION}
hold_out "$DATA"
length=$("$PYTHON" -m compositionality.study length "${ARM_NAME:-rft-matched}") # RL's steps or tokens, or nothing

run train_sft experiment=section41_42/stage2_rft_train engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_file="$DATA/train.parquet" "${held_out[@]}" data.seed=$((SEED + 1)) ${length:+"$length"} \
  trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "$@"
