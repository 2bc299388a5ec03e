#!/usr/bin/env bash
# A whole study from nothing to the page: sections 4.1 and 4.2 (training, accuracy by level), for every seed section 4.4
# (pass@k) and section 4.5 (failure modes), the paper's claims compared with all of it, the report. Section 4.3 is a study of
# its own (bash/section43/run_all.sh): run before, it is on the page too.
# Each step that is there already is skipped; stopped at any moment, it continues when run again.
# SEEDS=3 (seeds 0 to 2), ARMS="…" (of compositionality/config/study/section41_42.yaml), BACKEND=local, ray or slurm, BASE_MODEL.
# Usage: bash bash/study.sh [STEP:key=value …] [print=list|bash|make|json]; rl-level2:optim.lr=1e-4 is a key of one step
source "$(dirname "$0")/env.sh"
run run_study study=section41_42 report=true "$@"
