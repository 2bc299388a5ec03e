#!/usr/bin/env bash
# A whole study for SEEDS seeds (default 1), from nothing to the page: sections 4.1 and 4.2 (training, accuracy by level),
# then for every seed section 4.4 (pass@k) and section 4.5 (failure modes), the paper's claims compared with all of it, the
# report. Section 4.3 is a study of its own (bash/section43/run_all.sh): run before, it is on the page too.
# Each step that is there already is skipped; stopped at any moment, it continues when run again.
# Reads $MODEL_PATH (default: the profile's base model; some profiles make their own). Writes $DATA_DIR, $CKPT_DIR,
# $RESULTS_DIR, and for the seeds after the first the same names with -seed1, -seed2 …
export SECTION=section41_42
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

"${bound[@]}" "$PYTHON" examples/run_study.py study=section41_42 seeds="$SEEDS" summary=true report=true -- "$@"
