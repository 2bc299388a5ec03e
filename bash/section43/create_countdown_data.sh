#!/usr/bin/env bash
# Countdown problems by how many numbers they give. The files are listed in compositionality/config/problems/countdown.yaml.
# Reads nothing. Writes countdown_task/{stage1_level2/train,validation,test,…_level2}.parquet (paper: train and test only); the
# test problems depend only on TEST_SEED. RL sees none of them. Tiny: seconds.
source "$(dirname "$0")/../env.sh"
OUTPUT=${OUTPUT:-$DATA/countdown_task}

run create_problems set=countdown output="$OUTPUT" shared="${DATA%/*}/countdown_task" seed="$SEED" test_seed="$TEST_SEED" "$@"
