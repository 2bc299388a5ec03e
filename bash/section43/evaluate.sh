#!/usr/bin/env bash
# Accuracy on Countdown by level, with intervals clustered by problem, of every arm that the other scripts have made (or of
# $MODEL_PATH alone, called $MODEL_NAME): the mean of $COUNTDOWN_TEST_SAMPLES answers to each problem at temperature 1.
# Reads the models and countdown_task/test*.parquet; answers that arm.sh has collected are used as they are.
# Writes $RESULTS_DIR/section43/accuracy.{json,parquet} and the rollouts behind them. Tiny: a minute a model.
# EVALUATE_ON=validation: on countdown_task/validation*.parquet, in $RESULTS_DIR/section43-validation.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

TEST_FILES=() VALIDATION_FILES=() # not the string problems
for name in "${COUNTDOWN_FILES[@]}"; do
  case $name in
    test*) TEST_FILES+=("countdown_task/$name") ;;
    validation*) VALIDATION_FILES+=("countdown_task/$name") ;;
  esac
done
models=$(models_there string-base multi-base string-rl-level1to2 multi-rl-level1 multi-rl-level1to2)
evaluate section43 "$models" n_samples="$COUNTDOWN_TEST_SAMPLES" "$@"
