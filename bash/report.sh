#!/usr/bin/env bash
# The report of a study: one HTML page with the claims, every figure, answers to read, what is known of the data, settings.
# First the audit of the test files: solved again, held against the training files. What has not been run is named there.
# Reads seed 0's $RESULTS_DIR (its section41_42/seeds.json must be there), $CKPT_DIR and $DATA_DIR, those of the other seeds,
# and section 4.3's results where they are. Writes $RESULTS_DIR/data_audit.json and $RESULTS_DIR/report. Tiny: half a minute.
# COUNTDOWN_RESULTS_DIR: where section 4.3's results are, if not where its scripts put them.
# Usage: bash bash/report.sh [--check|--force]; --check writes nothing and refuses a page that is no longer what it shows.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

countdown=$RESULTS_DIR
if declare -p "PRETRAIN_COUNTDOWN_${ENGINE^^}" >/dev/null 2>&1; then
  name=$(basename "$RESULTS_DIR")
  countdown=$(dirname "$RESULTS_DIR")/${name/#$PROFILE/$PROFILE-countdown}
fi
countdown=${COUNTDOWN_RESULTS_DIR:-$countdown}

there=()
add() { if [[ -e $2 || -n ${DRY_RUN:-} ]]; then there+=("$1=$2"); fi; }
add countdown "$countdown"
add checkpoints "$CKPT_DIR"
add data "$DATA_DIR"

# problem_paths NAME…: those of the problem files that are there, "a,b".
problem_paths() {
  local name paths=()
  for name in "$@"; do
    if [[ -f $DATA_DIR/$name.parquet || -n ${DRY_RUN:-} ]]; then paths+=("$DATA_DIR/$name.parquet"); fi
  done
  (IFS=,; echo "${paths[*]}")
}

training=()
for name in "${PROBLEM_FILES[@]}"; do if [[ $name == */train ]]; then training+=("$name"); fi; done
tests=$(problem_paths "${TEST_FILES[@]}")
if [[ -n $tests && " $* " != *" --check "* ]]; then
  step audit_data "files=[$tests]" "against=[$(problem_paths "${training[@]}")]" output="$RESULTS_DIR/data_audit.json" \
    $(force_in "$@")
fi
step report study="$RESULTS_DIR" output="$RESULTS_DIR/report" "${there[@]}" "$@"
