#!/usr/bin/env bash
# Problems of the scaling study: to train on, the hold-out, deeper and longer ones: compositionality/config/problems/scaling.yaml.
# Reads nothing. Writes scaling_task/{train-level1 …,holdout,deeper,longer}.parquet; all but those to train on depend on TEST_SEED
# alone. Tiny: seconds.
source "$(dirname "$0")/../env.sh"
OUTPUT=${OUTPUT:-$DATA/scaling_task}

run create_problems set=scaling output="$OUTPUT" seed="$SEED" test_seed="$TEST_SEED" "$@"
