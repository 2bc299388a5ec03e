#!/usr/bin/env bash
# The report of a study: one HTML page with the claims, every figure, completions to read, what is known of the data, settings.
# First the audit of the test files: solved again, checked for overlap with the training files. What has not been run is named there.
# SECTION: section41_42 (default), behavior_injection or scaling_law.
# Reads seed 0's $RESULTS_DIR (its $SECTION/seeds.json must be there), $CKPT_DIR and $DATA_DIR, those of the other seeds, and
# section 4.3's results where they are. (Of a registered study: those of every seed and split; audited is the first.) Writes
# $RESULTS_DIR/data_audit.json and $RESULTS_DIR/report. Tiny: half a minute.
# The claims of the other studies stand below, where they have been decided (their claims.json).
# COUNTDOWN_RESULTS_DIR: where section 4.3's results are, if not where its scripts put them.
# Usage: bash bash/report.sh [--check|--force]; --check writes nothing and refuses a page that is no longer what it shows.
case ${SECTION:-} in "" | section4[345]) SECTION=section41_42 ;; esac
export SECTION
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
share "$@"

OUTPUT=${OUTPUT:-$RESULTS_DIR/report}

# In a registered study $DATA_DIR and $CKPT_DIR are what the names of all its folders begin with.
first=${REPLICATES:-} first=${first%% *} end=""
if [[ -n $first ]]; then end=-seed${first/:/-split} end=${end%-split0}; fi

there() { [[ -e $1 || -n ${DRY_RUN:-} ]]; }

# made NAME…: those of the problem files that are there.
made() {
  local name names=()
  for name in "$@"; do if there "$DATA_DIR$end/$name.parquet"; then names+=("$name"); fi; done
  DATA_DIR=$DATA_DIR$end files "${names[@]}"
}

folders=()
if [[ $SECTION == behavior_injection ]]; then
  tests=$(made igsm_task/test igsm_task/test_ood) training=$(made igsm_task/sft igsm_task/rl)
elif [[ $SECTION == scaling_law ]]; then
  tests=$(made scaling_task/{holdout,deeper,longer}) training=$(made $SCALING_TRAIN_FILES)
else
  tests=$(made $STRING_TEST_FILES) training=$(made string_task/stage2_level{1,2,1to2}/train)
  if there "$COUNTDOWN_RESULTS_DIR"; then folders+=(countdown="$COUNTDOWN_RESULTS_DIR"); fi
fi
for word in checkpoints="$CKPT_DIR" data="$DATA_DIR"; do
  if there "${word#*=}$end"; then folders+=("$word"); fi
done

if [[ -n $tests && " $* " != *" --check "* ]]; then
  run audit_data files="[$tests]" against="[$training]" output="$RESULTS_DIR/data_audit.json" "$@"
fi
strings=$RESULTS_DIR others=()
if [[ $SECTION != section41_42 ]]; then strings=${STRING_RESULTS_DIR:-$(sed -E 's/-(injection|scaling)//' <<<"$RESULTS_DIR")}; fi
for other in "$strings" "$strings-injection" "$strings-scaling"; do
  if [[ $other != "$RESULTS_DIR" && -f $other/claims.json ]]; then others+=("$other"); fi
done
if ((${#others[@]})); then folders+=(others="[$(list "${others[@]}")]"); fi
run report study="$RESULTS_DIR" section="$SECTION" output="$OUTPUT" "${folders[@]}" "$@"
