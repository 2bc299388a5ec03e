#!/usr/bin/env bash
# Accuracy before and after RL on the hold-out, on deeper compositions and on longer strings, of every model that the other
# scripts have made (or of $MODEL_PATH alone, called $MODEL_NAME). Completions that arm.sh has collected are used as they are.
# DOMAINS (any value): also on the held-out rows of other domains, each a group of its own.
# Reads the models and scaling_task/*.parquet. Writes $RESULTS_DIR/scaling_law/accuracy.{json,parquet} and the rollouts.
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODELS=${MODEL_PATH:+$(list "$MODEL_NAME:$MODEL_PATH")}
MODELS=${MODELS:-$("$PYTHON" -m compositionality.study models)}
PROBLEMS=${PROBLEMS:-$(files scaling_task/{holdout,deeper,longer} ${DOMAINS:+scaling_task/domains/holdout})}

run evaluate experiment="$SECTION/evaluate${DOMAINS:+_domains}" models="[$MODELS]" problems="[$PROBLEMS]" output="${OUTPUT:-$RESULTS_DIR/$SECTION}" \
  engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" "$@"
