#!/usr/bin/env bash
# Behaviour injection from nothing to the page, for SEEDS seeds (default 1): run_seed.sh for each, then their summary, the
# influence of their queries, the claims, the report. Each step that is there already is skipped; stopped at any moment, it
# continues when run again.
# Reads $MODEL_PATH (default: the profile's base model; some profiles make their own). Writes $DATA_DIR, $CKPT_DIR,
# $RESULTS_DIR, and for the seeds after the first the same names with -seed1, -seed2 … Time: see README.md.
export SECTION=behavior_injection
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

"${bound[@]}" "$PYTHON" examples/run_study.py study=behavior_injection seeds="$SEEDS" summary=true report=true -- "$@"
