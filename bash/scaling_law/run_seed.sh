#!/usr/bin/env bash
# The scaling study for one seed: problems, a base model of each size and RL from it (side by side where there are cores for
# it), accuracy before and after.
# Each step that is there already is skipped; stopped at any moment, it continues when run again.
# Reads nothing (paper: the models of the Hub). Writes $DATA_DIR, $CKPT_DIR, $RESULTS_DIR. Time: see README.md.
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

"${bound[@]}" "$PYTHON" examples/run_study.py study=scaling_law -- "$@"
