#!/usr/bin/env bash
# One model's answers for pass@k: MODEL is a name of the tables (stage1, rl-level1, rl-level2, …). This runs in a lane.
# Reads the model and the problem files $PASSK_FILES. Writes $RESULTS_DIR/section44/rollouts/MODEL, resumably.
# Tiny: about a minute on one core (18,400 answers).
# Usage: bash bash/section44/collect.sh MODEL [--force]
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

name=${1:?which model? stage1 rl-level1 rl-level2 …}
shift
passk "$name:$(model_of "$name")" answers_only=true "$@"
