#!/usr/bin/env bash
# Greedy accuracy by level, with intervals, of every model that the other scripts have made (or of $MODEL_PATH alone, called
# $MODEL_NAME), on levels trained on and on harder ones. Completions that arm.sh has collected are used as they are.
# Reads the models and igsm_task/test*.parquet. Writes $RESULTS_DIR/behavior_injection/accuracy.{json,parquet} and the
# rollouts behind them. EVALUATE_ON=validation: on the validation file, in $RESULTS_DIR/behavior_injection-validation.
export SECTION=behavior_injection
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODELS=${MODEL_PATH:+$(list "$MODEL_NAME:$MODEL_PATH")}
MODELS=${MODELS:-$("$PYTHON" -m compositionality.study models)}
names=(igsm_task/test)
if [[ -f $DATA_DIR/igsm_task/test_ood.parquet || -n ${DRY_RUN:-} ]]; then names+=(igsm_task/test_ood); fi
OUTPUT=${OUTPUT:-$RESULTS_DIR/$SECTION$OF_MODEL}
if [[ ${EVALUATE_ON:-test} == validation ]]; then names=(igsm_task/validation) OUTPUT+=-validation; fi
PROBLEMS=${PROBLEMS:-$(files "${names[@]}")}

run evaluate experiment="$SECTION/evaluate" models="[$MODELS]" problems="[$PROBLEMS]" output="$OUTPUT" \
  engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" temperature=0 "$@"
