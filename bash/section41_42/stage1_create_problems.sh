#!/usr/bin/env bash
# Stage 1, problems: single functions with their definitions shown.
# Reads nothing. Writes $DATA_DIR/string_task/stage1_level1/train.parquet. Seconds.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

create_problems string_task/stage1_level1/train "$@"
