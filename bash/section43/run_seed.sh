#!/usr/bin/env bash
# Section 4.3 for one seed, from nothing to the table: the base model, the string problems and Stage 1 by the scripts of
# section 4.1 (what is there is used), Countdown problems, Stage 1 on both, the arms (side by side where there are cores
# for it), accuracy by level. Each step that is there already is skipped; stopped at any moment, it continues when run again.
# Reads $MODEL_PATH (default: the profile's base model; some profiles make their own). Writes $DATA_DIR, $CKPT_DIR,
# $RESULTS_DIR. Time: see README.md.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

"${bound[@]}" "$PYTHON" examples/run_study.py study=section43 -- "$@"
