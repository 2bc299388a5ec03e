#!/usr/bin/env bash
# Problems of the scaling study: to train on, the hold-out, deeper and longer ones: compositionality/config/problems/scaling.yaml.
# Reads nothing. Writes $DATA_DIR/scaling_task/{train-level1 …,holdout,deeper,longer}.parquet; all but those to train on depend
# on $TEST_SEED alone. Tiny: seconds.
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

OUTPUT=${OUTPUT:-$DATA_DIR/scaling_task}

run create_problems set=scaling output="$OUTPUT" seed="$SEED" test_seed="$TEST_SEED" workers="$CORES" "$@"
