#!/usr/bin/env bash
# What goes wrong in the completions that section 4.1 has collected, found by program: one class for every completion,
# shares with intervals, functions and pairs that fail, figures. Nothing is sampled. Prints level 3; the files hold all levels.
# Reads $RESULTS_DIR/section41_42/rollouts and the test files; the models are those of $MODELS that are there.
# Writes $RESULTS_DIR/section45/{results.parquet,labels.parquet,failure_modes.*,functions.*}. Seconds.
# EVALUATE_ON=validation: the completions of the validation files, into $RESULTS_DIR/section45-validation.
# SEEDS=N: for each seed. judge=true asks a language model too: JUDGE_BASE_URL, JUDGE_MODEL, JUDGE_API_KEY (see README.md here).
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODELS=${MODELS:-base stage1 rft rl-level1 rl-level2}
if ((SEEDS > 1)); then
  "${bound[@]}" "$PYTHON" examples/run_study.py scripts="[section45/failure_modes]" seeds="$SEEDS" -- "$@"
  exit
fi
names=$STRING_TEST_FILES on=""
if [[ ${EVALUATE_ON:-test} == validation ]]; then names=$STRING_VALIDATION_FILES on=-validation; fi
PROBLEMS=${PROBLEMS:-$(files $names)}
EVALUATION=${EVALUATION:-$RESULTS_DIR/section41_42$on}
OUTPUT=${OUTPUT:-$RESULTS_DIR/section45$on}
there=()
for name in $MODELS; do
  if [[ -d $EVALUATION/rollouts/$name || -n ${DRY_RUN:-} ]]; then there+=("$name"); fi
done
((${#there[@]})) || fail "$EVALUATION/rollouts: none of $MODELS; run: bash bash/section41_42/evaluate.sh"

run failure_modes experiment=section45/failure_modes evaluation="$EVALUATION" "models=[$(IFS=,; echo "${there[*]}")]" \
  problems="[$PROBLEMS]" output="$OUTPUT" "$@"
