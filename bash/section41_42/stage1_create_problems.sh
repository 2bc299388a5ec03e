#!/usr/bin/env bash
# Stage 1, problems: single functions with their definitions shown.
# Reads nothing. Writes string_task/stage1_level1/train.parquet. Takes seconds.
source "$(dirname "$0")/../env.sh"
OUTPUT=${OUTPUT:-$DATA/string_task}

run create_problems set=string files="[stage1*]" output="$OUTPUT" shared="${DATA%/*}/string_task" seed="$SEED" "$@"
