#!/usr/bin/env bash
# What goes wrong in the answers that section 4.1 has collected, found by program: one class for every response, shares
# with intervals, functions and pairs that fail, figures. Nothing is sampled. Prints level 3; the files hold all levels.
# Reads $RESULTS_DIR/section41_42/rollouts and the test files; the models are those of $MODELS that are there.
# Writes $RESULTS_DIR/section45/{failure_modes.json,labels.parquet,by_problem.parquet,failure_modes.*,functions.*}. Seconds.
# EVALUATE_ON=validation: the answers to the validation files, into $RESULTS_DIR/section45-validation. SEEDS=N: for each.
# judge=true asks a language model too: JUDGE_BASE_URL, JUDGE_MODEL, JUDGE_API_KEY (see README.md here).
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

MODELS=${MODELS:-base stage1 rft rl-level1 rl-level2}

failure_modes() {
  local files=("${TEST_FILES[@]}") on="" there=() name answers
  if [[ ${EVALUATE_ON:-test} == validation ]]; then files=("${VALIDATION_FILES[@]}") on=-validation; fi
  files=("${files[@]/#/$DATA_DIR$suffix/}")
  files=("${files[@]/%/.parquet}")
  answers=$RESULTS_DIR$suffix/section41_42$on
  for name in $MODELS; do
    if [[ -d $answers/rollouts/$name || -n ${DRY_RUN:-} ]]; then there+=("$name"); fi
  done
  if ((${#there[@]} == 0)); then fail "$answers/rollouts: none of $MODELS; run: bash bash/section41_42/evaluate.sh"; fi
  step failure_modes evaluation="$answers" "models=[$(IFS=,; echo "${there[*]}")]" \
    "problems=[$(IFS=,; echo "${files[*]}")]" output="$RESULTS_DIR$suffix/section45$on" "$@"
}

each_seed failure_modes "$@"
