#!/usr/bin/env bash
# Accuracy by level, with intervals, of every model that the other scripts have made (or of $MODEL_PATH alone, called
# $MODEL_NAME). Reads the models and the test files; completions that arm.sh has collected are used as they are.
# Writes $RESULTS_DIR/section41_42/accuracy.{json,parquet} and the rollouts behind them. Tiny: half a minute a model.
# EVALUATE_ON=validation: on the validation files, in $RESULTS_DIR/section41_42-validation.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODELS=${MODEL_PATH:+$(list "$MODEL_NAME:$MODEL_PATH")}
MODELS=${MODELS:-$("$PYTHON" -m compositionality.study models)}
PROBLEMS=${PROBLEMS:-$(files $STRING_TEST_FILES)}
OUTPUT=${OUTPUT:-$RESULTS_DIR/section41_42$OF_MODEL}
if [[ ${EVALUATE_ON:-test} == validation ]]; then PROBLEMS=$(files $STRING_VALIDATION_FILES) OUTPUT+=-validation; fi

run evaluate experiment=section41_42/evaluate models="[$MODELS]" problems="[$PROBLEMS]" output="$OUTPUT" \
  engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" "$@"
