#!/usr/bin/env bash
# Countdown problems; the level of a problem is how many numbers it gives. Two numbers to learn from, all levels to
# validate and to test on; the test problems depend on $TEST_SEED alone. RL never sees any of them.
# Reads nothing. Writes $DATA_DIR/countdown_task/{stage1_level2/train,validation,test,…_level2}.parquet (paper: train and test only).
# Tiny: seconds.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

for name in "${COUNTDOWN_FILES[@]}"; do
  create_problems "countdown_task/$name" "$@"
done
