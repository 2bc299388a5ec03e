#!/usr/bin/env bash
# The scaling study from nothing to the page, for SEEDS seeds (default 3): run_seed.sh for each, then their summary, the laws
# with what they predict without a refit, the claims, the report. Each step that is there already is skipped; stopped at any
# moment, it continues when run again.
# Reads nothing (paper: the models of the Hub). Writes $DATA_DIR, $CKPT_DIR, $RESULTS_DIR, and for the seeds after the first
# the same names with -seed1, -seed2 … Time: see README.md.
# Usage: bash bash/scaling_law/run_all.sh [--quick] [key=value …]; --quick (or PROFILE=quick): four sizes, two seeds, fewer
# steps, to see how it goes.
if [[ ${1:-} == --quick ]]; then export PROFILE=quick && shift; fi
if [[ ${PROFILE:-} == quick ]]; then SEEDS=${SEEDS:-2}; fi
export SECTION=scaling_law SEEDS=${SEEDS:-3}
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

"${bound[@]}" "$PYTHON" examples/run_study.py study=scaling_law seeds="$SEEDS" summary=true report=true -- "$@"
