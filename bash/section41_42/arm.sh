#!/usr/bin/env bash
# One arm from its training to its completions of the test problems: ARM is a name in compositionality/config/study/
# section41_42.yaml (rl-level2, rft-matched …), which says how it is trained; base and stage1 are only evaluated. This is
# what runs in a lane.
# Reads the model that the arm starts from, the training and the test files. Writes the arm's run folders under $CKPT_DIR
# and its completions under $RESULTS_DIR/section41_42/rollouts. Tiny: one to four minutes on one core.
# Usage: bash bash/section41_42/arm.sh ARM [--force] [key=value …]
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

arm=$(named "${1:-}" "which arm? One of compositionality/config/study/$SECTION.yaml")
share "$@"
found=$("$PYTHON" -m compositionality.study arm "$arm")
eval "$found" # SCRIPT, ARGUMENTS and with (its variables), NEW_PROBLEMS, MODEL

if ((${#NEW_PROBLEMS[@]})); then run create_problems workers="$CORES" "${NEW_PROBLEMS[@]}" "${@:2}"; fi
with+=(ARM_NAME="$arm")
if [[ -n $SCRIPT ]]; then script "$SCRIPT" "${ARGUMENTS[@]}" "${@:2}"; fi
with=(MODEL_NAME="$arm" MODEL_PATH="$MODEL" OF_MODEL="")
script "$SECTION/evaluate" answers_only=true "${@:2}"
