#!/usr/bin/env bash
# Problems of the scaling study: to train on, a file for each level, the hold-out of which the loss is made, and two files to
# see what else changes: more functions (deeper), longer strings (longer). All but the first depend on $TEST_SEED alone.
# Reads nothing. Writes $DATA_DIR/scaling_task/{train-level1 …,holdout,deeper,longer}.parquet. Tiny: seconds.
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

share "$@"

OUTPUT=${OUTPUT:-$DATA_DIR/scaling_task}
read -ra levels <<<"$SCALING_TRAIN_LEVELS"
read -ra deeper <<<"$SCALING_DEEPER_LEVELS"

# create NAME LEVELS key=value …: one file.
create() {
  run create_problems experiment="$SECTION/prepare_data" task=string mode=clean output="$OUTPUT/$1.parquet" \
    levels="[$2]" workers="$CORES" "${@:3}"
}

for level in "${levels[@]}"; do
  create "train-level$level" "$level" split=train seed="$SEED" count=$((SCALING_TRAIN_COUNT / ${#levels[@]})) "$@"
done
create holdout "$(list "${levels[@]}")" group=holdout split=test seed="$TEST_SEED" count="$SCALING_HOLDOUT_COUNT" "$@"
create deeper "$(list "${deeper[@]}")" group=holdout split=test seed="$TEST_SEED" \
  count=$((SCALING_TRANSFER_PER_LEVEL * ${#deeper[@]})) "$@"
create longer "$(list "${levels[@]}")" group=longer split=test seed="$TEST_SEED" input_length=[7,8] max_length=14 \
  count=$((SCALING_TRANSFER_PER_LEVEL * ${#levels[@]})) "$@"
