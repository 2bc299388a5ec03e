#!/usr/bin/env bash
# Decides the paper's claims by the results of all seeds: figures, intervals, decisions, and what would decide the undecided ones.
# Claims about missing results are "not run". study=behavior_injection or scaling_law: the claims of that study. SEEDS: as in the run.
# Writes results/STUDY/claims.json. countdown=STUDY: the study of section 4.3, if it is not countdown[-PROFILE].
source "$(dirname "$0")/env.sh"
run run_study study=section41_42 "only=[claims]" "$@"
