#!/usr/bin/env bash
# The paper's claims held against what was run of this profile, all sections and seeds that are there: our figures,
# intervals, verdicts, and what would decide the undecided ones. Whatever is missing is said to be not run.
# Reads section41_42/accuracy.json, section43/accuracy.json, section44/ and section45/ of the seeds 0 … SEEDS-1. Writes
# claims.json and claims.csv in seed 0's $RESULTS_DIR; with markdown=README.md the claims' place there too. Seconds.
# COUNTDOWN_RESULTS_DIR: where section 4.3's results are, if not where its scripts put them.
# Usage: [SEEDS=3] bash bash/claims.sh [markdown=README.md]
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Started for one of the two studies of a profile (bash/lib.sh), it is about both.
name=$(basename "$RESULTS_DIR")
name=${name/#$PROFILE-countdown/$PROFILE}
RESULTS_DIR=$(dirname "$RESULTS_DIR")/$name
if declare -p "PRETRAIN_COUNTDOWN_${ENGINE^^}" >/dev/null 2>&1; then name=${name/#$PROFILE/$PROFILE-countdown}; fi
COUNTDOWN_RESULTS_DIR=${COUNTDOWN_RESULTS_DIR:-$(dirname "$RESULTS_DIR")/$name}

add() { if [[ -f $2 || -n ${DRY_RUN:-} ]]; then local -n list=$1 && list+=("seed$seed:$2"); fi; }

add_sections() {
  add accuracy "$RESULTS_DIR$suffix/section41_42/accuracy.json"
  add countdown "$COUNTDOWN_RESULTS_DIR$suffix/section43/accuracy.json"
  add passk "$RESULTS_DIR$suffix/section44/by_problem.parquet"
  add failures "$RESULTS_DIR$suffix/section45/by_problem.parquet"
}

accuracy=() countdown=() passk=() failures=() results=()
each_seed add_sections
for kind in accuracy countdown passk failures; do
  declare -n list=$kind
  if ((${#list[@]})); then results+=("$kind=[$(IFS=,; echo "${list[*]}")]"); fi
done
step claims "${results[@]}" output="$RESULTS_DIR/claims.json" "$@"
