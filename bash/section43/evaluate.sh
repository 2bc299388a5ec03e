#!/usr/bin/env bash
# Accuracy on Countdown by level, with intervals clustered by problem, of every arm that the other scripts have made (or of
# $MODEL_PATH alone, called $MODEL_NAME): the mean of $COUNTDOWN_TEST_SAMPLES completions of each problem at temperature 1.
# Reads the models and countdown_task/test*.parquet; completions that arm.sh has collected are used as they are.
# Writes $RESULTS_DIR/section43/accuracy.{json,parquet} and the rollouts behind them. Tiny: a minute a model.
# EVALUATE_ON=validation: on countdown_task/validation*.parquet, in $RESULTS_DIR/section43-validation.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODELS=${MODEL_PATH:+$(list "${MODEL_NAME:-model}:$MODEL_PATH")}
MODELS=${MODELS:-$("$PYTHON" -m compositionality.study models)}
on=${EVALUATE_ON:-test}
names=(countdown_task/"$on"_level2 countdown_task/"$on")
if [[ $STRING_MODE == paper ]]; then names=(countdown_task/test); fi # its two-number problems are those of Stage 1
PROBLEMS=${PROBLEMS:-$(files "${names[@]}")}
OUTPUT=${OUTPUT:-$RESULTS_DIR/section43}
if [[ $on == validation ]]; then OUTPUT+=-validation; fi

run evaluate experiment=section43/evaluate models="[$MODELS]" problems="[$PROBLEMS]" output="$OUTPUT" \
  engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" n_samples="$COUNTDOWN_TEST_SAMPLES" "$@"
