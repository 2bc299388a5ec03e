#!/usr/bin/env bash
# Countdown problems; the level of a problem is how many numbers it gives. Two numbers to learn from, all levels to
# validate and to test on; the test problems depend on $TEST_SEED alone. RL never sees any of them. Two numbers stand in
# files of their own: there are few such problems where numbers are small.
# Reads nothing. Writes $DATA_DIR/countdown_task/{stage1_level2/train,validation,test,…_level2}.parquet (paper: train and test only).
# Tiny: seconds.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

OUTPUT=${OUTPUT:-$DATA_DIR/countdown_task}

# create NAME [key=value …]: one file.
create() { run create_problems task=countdown mode="$STRING_MODE" output="$OUTPUT/$1.parquet" workers="$CORES" "${@:2}"; }

if [[ $STRING_MODE == paper ]]; then
  create stage1_level2/train levels=[2] count="$COUNTDOWN_TRAIN_COUNT" "$@"
  create test levels=[3,4,5] count=$((3 * COUNTDOWN_TEST_PER_LEVEL)) "$@"
  exit
fi
create stage1_level2/train split=train seed="$SEED" levels=[2] count="$COUNTDOWN_TRAIN_COUNT" "$@"
create validation_level2 split=validation seed="$SEED" levels=[2] count="$COUNTDOWN_LEVEL2_COUNT" "$@"
create validation split=validation seed="$SEED" levels=[3,4,5] count=$((3 * COUNTDOWN_VALIDATION_PER_LEVEL)) "$@"
create test_level2 split=test seed="$TEST_SEED" levels=[2] count="$COUNTDOWN_LEVEL2_COUNT" "$@"
create test split=test seed="$TEST_SEED" levels=[3,4,5] count=$((3 * COUNTDOWN_TEST_PER_LEVEL)) "$@"
