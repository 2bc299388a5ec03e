#!/usr/bin/env bash
# Countdown problems, by how many numbers they give. Which files: compositionality/config/problems/countdown.yaml.
# Reads nothing. Writes $DATA_DIR/countdown_task/{stage1_level2/train,validation,test,…_level2}.parquet (paper: train and test
# only); the test problems depend on $TEST_SEED alone. RL never sees any of them. Tiny: seconds.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

OUTPUT=${OUTPUT:-$DATA_DIR/countdown_task}

run create_problems set=countdown output="$OUTPUT" seed="$SEED" test_seed="$TEST_SEED" workers="$CORES" "$@"
