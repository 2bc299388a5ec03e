#!/usr/bin/env bash
# Accuracy on Countdown by level, with intervals clustered by problem, of every arm that the other scripts have made (or of
# $MODEL_PATH alone, called $MODEL_NAME): the mean of $COUNTDOWN_TEST_SAMPLES completions of each problem at temperature 1.
# Reads the models and countdown_task/test*.parquet; completions that arm.sh has collected are used as they are.
# Writes $RESULTS_DIR/section43/accuracy.{json,parquet} and the rollouts behind them. Tiny: a minute a model.
# EVALUATE_ON=validation: on countdown_task/validation*.parquet, in $RESULTS_DIR/section43-validation. EVALUATE_ON=strings, by
# itself after the test of all arms: one completion of each string test problem of the trained functions (held-out ones, if
# there are no others), in $RESULTS_DIR/section43-strings: did RL on strings work at all?
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

others=${EVALUATE_ON:-}${MODEL_PATH:-}${PROBLEMS:-} # models or problems than the study's
MODELS=${MODEL_PATH:+$(list "$MODEL_NAME:$MODEL_PATH")}
MODELS=${MODELS:-$("$PYTHON" -m compositionality.study models)}
on=${EVALUATE_ON:-test}
read -ra names <<<"${COUNTDOWN_TEST_FILES//test/$on}"
if [[ $on == strings ]]; then
  read -ra names < <(grep -o '[^ ]*trained' <<<"$STRING_TEST_FILES" || echo "$STRING_TEST_FILES")
  COUNTDOWN_TEST_SAMPLES=1
fi
PROBLEMS=${PROBLEMS:-$(files "${names[@]}")}
OUTPUT=${OUTPUT:-$RESULTS_DIR/section43$OF_MODEL}
if [[ $on != test ]]; then OUTPUT+=-$on; fi

run evaluate experiment=section43/evaluate models="[$MODELS]" problems="[$PROBLEMS]" output="$OUTPUT" \
  engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" n_samples="$COUNTDOWN_TEST_SAMPLES" "$@"
if [[ -z $others ]]; then EVALUATE_ON="strings" script section43/evaluate "$@"; fi
