#!/usr/bin/env bash
# Sections 4.1 and 4.2 for one seed, from nothing to the table: pretraining where the profile asks for it, problems,
# Stage 1, the arms of Stage 2 (side by side where there are cores for it), accuracy by level.
# Each step that is there already is skipped; stopped at any moment, it continues when run again.
# Reads $MODEL_PATH (default: the profile's base model; some profiles make their own). Writes $DATA_DIR, $CKPT_DIR,
# $RESULTS_DIR.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

"${bound[@]}" "$PYTHON" examples/run_study.py study=section41_42 -- "$@"
