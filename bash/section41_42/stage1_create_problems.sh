#!/usr/bin/env bash
# Stage 1, problems: single functions with their definitions shown.
# Reads nothing. Writes $SEED_DATA_DIR/string_task/stage1_level1/train.parquet. Seconds.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

OUTPUT=${OUTPUT:-$SEED_DATA_DIR/string_task/stage1_level1/train.parquet}
if [[ $STRING_MODE == paper ]]; then
  options=(stage=1)
else
  options=(seed="$SEED" functions=all show_definitions=true)
fi

run create_problems task=string mode="$STRING_MODE" output="$OUTPUT" workers="$CORES" split=train \
  count="$STRING_STAGE1_COUNT" "${options[@]}" "$@"
