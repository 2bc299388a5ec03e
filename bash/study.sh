#!/usr/bin/env bash
# The whole study of sections 4.1 and 4.2, from start to page: training and accuracy by level, for every seed pass@k (section
# 4.4) and failure modes (section 4.5), then the paper's claims and the page. Section 4.3 is a separate study
# (bash/section43/run_all.sh); if it was run before, the page shows it too.
# Steps whose results exist are skipped; stopped at any moment, it continues when run again.
# Variables: SEEDS=3 (seeds 0 to 2), ARMS="rl-level2 gold-sft" (arms of compositionality/config/study/section41_42.yaml),
# BASE_MODEL (a folder or a Hub id, in place of the profile's model), BACKEND=ray or slurm (a cluster).
# Usage: bash bash/study.sh [STEP:key=value …]
#   bash bash/study.sh rl-level2:optim.lr=1e-4   a key of one step
#   bash bash/study.sh print=list                the steps, and why each would run; print=bash, make or json writes the plan
source "$(dirname "$0")/env.sh"
run run_study study=section41_42 report=true "$@"
