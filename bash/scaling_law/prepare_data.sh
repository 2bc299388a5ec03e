#!/usr/bin/env bash
# Problems of the scaling study (compositionality/config/problems/scaling.yaml): training, hold-out, deeper and longer ones.
# Reads nothing. Writes scaling_task/{train-level1 …,holdout,deeper,longer}.parquet; all but the training files depend only on
# TEST_SEED. Tiny: seconds.
source "$(dirname "$0")/../env.sh"
OUTPUT=${OUTPUT:-$DATA/scaling_task}

run create_problems set=scaling output="$OUTPUT" seed="$SEED" test_seed="$TEST_SEED" "$@"
