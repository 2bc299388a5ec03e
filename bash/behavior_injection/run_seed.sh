#!/usr/bin/env bash
# Behaviour injection for one seed, from nothing to the table: the base model, problems, each arm's SFT and RL (side by side
# where there are cores for it), accuracy by level.
# Each step that is there already is skipped; stopped at any moment, it continues when run again.
# Reads $MODEL_PATH (default: the profile's base model; some profiles make their own). Writes $DATA_DIR, $CKPT_DIR,
# $RESULTS_DIR. Time: see README.md.
export SECTION=behavior_injection
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

"${bound[@]}" "$PYTHON" examples/run_study.py study=behavior_injection -- "$@"
