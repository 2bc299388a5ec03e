#!/usr/bin/env bash
# Stage 1, problems: single functions with their definitions shown.
# Reads nothing. Writes $SEED_DATA_DIR/string_task/stage1_level1/train.parquet. Seconds.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

OUTPUT=${OUTPUT:-$SEED_DATA_DIR/string_task}

run create_problems set=string "files=[stage1*]" output="$OUTPUT" seed="$SEED" workers="$CORES" "$@"
