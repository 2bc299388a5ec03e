#!/usr/bin/env bash
# The paper's claims compared with what was run, all seeds: figures, intervals, decisions, and what would decide the undecided
# ones. Claims about results that are missing are "not run". study=behavior_injection or scaling_law: of those. SEEDS as of the run.
# Writes results/STUDY/claims.json. countdown=STUDY: where section 4.3 is, if not in countdown[-PROFILE].
source "$(dirname "$0")/env.sh"
run run_study study=section41_42 "only=[claims]" "$@"
