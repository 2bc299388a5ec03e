#!/usr/bin/env bash
# One model's completions for pass@k: MODEL is a name of the tables (stage1, rl-level1, rl-level2, …). This runs in a lane.
# Reads the model and the problem files $PASSK_FILES. Writes $RESULTS_DIR/section44/rollouts/MODEL, resumably; in all.parquet
# every problem with all of its responses.
# Tiny: about a minute on one core (32,000 completions).
# Usage: bash bash/section44/collect.sh MODEL [--force]
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

model=$(named "${1:-}" "which model? stage1 rl-level1 rl-level2 …")
MODELS=$(DRY_RUN=1 "$PYTHON" -m compositionality.study models "$model")
PROBLEMS=${PROBLEMS:-$(files $PASSK_FILES)}
OUTPUT=${OUTPUT:-$RESULTS_DIR/section44}

run passk experiment=section44/passk models="[$MODELS]" problems="[$PROBLEMS]" output="$OUTPUT" engine="$ROLLOUT_ENGINE" \
  ray_address="${RAY_ADDRESS:-}" seed="$SEED" answers_only=true "${@:2}"
