#!/usr/bin/env bash
# Stage 1 on strings and numbers, training data: the rows of section 4.1 and of Countdown together.
# Reads the folders of rows TRAIN_FILES ([A,B]). Writes string_countdown_task/stage1_rft_data/{train,test}.parquet. Takes seconds.
source "$(dirname "$0")/../env.sh"
TRAIN_FILES=${TRAIN_FILES:-[$DATA/string_task/stage1_level1_rft/data,$DATA/countdown_task/stage1_level2_rft/data]}
OUTPUT=${OUTPUT:-$DATA/string_countdown_task/stage1_rft_data}

run merge_data inputs="$TRAIN_FILES" output="$OUTPUT" "$@"
