#!/usr/bin/env bash
# The report of a study: one HTML page with the claims, every figure, completions to read, what is known of the data,
# settings. First the audit of the test files: solved again, checked for overlap with the training files. What has not been run is
# named there.
# Reads seed 0's $RESULTS_DIR (its section41_42/seeds.json must be there), $CKPT_DIR and $DATA_DIR, those of the other seeds,
# and section 4.3's results where they are. Writes $RESULTS_DIR/data_audit.json and $RESULTS_DIR/report. Tiny: half a minute.
# COUNTDOWN_RESULTS_DIR: where section 4.3's results are, if not where its scripts put them.
# Usage: bash bash/report.sh [--check|--force]; --check writes nothing and refuses a page that is no longer what it shows.
export SECTION=section41_42
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

name=${RESULTS_DIR##*/}
COUNTDOWN_RESULTS_DIR=${COUNTDOWN_RESULTS_DIR:-$(dirname "$RESULTS_DIR")/${name/#$STUDY/$COUNTDOWN_STUDY}}

# made PATH…: those that are there.
made() { for path in "$@"; do if [[ -e $path || -n ${DRY_RUN:-} ]]; then echo "$path"; fi; done; }

folders=()
for word in countdown="$COUNTDOWN_RESULTS_DIR" checkpoints="$CKPT_DIR" data="$DATA_DIR"; do
  if [[ -n $(made "${word#*=}") ]]; then folders+=("$word"); fi
done
names=(stage2_level1 stage2_level2)
if [[ $STRING_MODE == clean ]]; then names+=(stage2_level1to2); fi
tests=$(made $(files $STRING_TEST_FILES | tr , ' ') | paste -sd,)
names=("${names[@]/#/string_task/}")
training=$(made $(files "${names[@]/%//train}" | tr , ' ') | paste -sd,)

if [[ -n $tests && " $* " != *" --check "* ]]; then
  run audit_data files="[$tests]" against="[$training]" output="$RESULTS_DIR/data_audit.json" $(only_force "$@")
fi
run report study="$RESULTS_DIR" output="$RESULTS_DIR/report" "${folders[@]}" "$@"
