#!/usr/bin/env bash
# Accuracy before and after RL on the hold-out, on deeper compositions and on longer strings, of every model that the other
# scripts have made (or of $MODEL_PATH alone, called $MODEL_NAME). Completions that arm.sh has collected are used as they are.
# Reads the models and $VAL_FILES (default: scaling_task/{holdout,deeper,longer}.parquet). Writes $RESULTS_DIR/scaling_law/accuracy.{json,parquet} and the rollouts.
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODELS=${MODEL_PATH:+$(list "$MODEL_NAME:$MODEL_PATH")}
MODELS=${MODELS:-$("$PYTHON" -m compositionality.study models)}
VAL_FILES=${VAL_FILES:-$(files scaling_task/{holdout,deeper,longer})}

run evaluate experiment="$SECTION/evaluate" models="[$MODELS]" problems="[$VAL_FILES]" output="${OUTPUT:-$RESULTS_DIR/$SECTION}" \
  engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" "$@"
