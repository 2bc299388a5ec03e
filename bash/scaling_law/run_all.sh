#!/usr/bin/env bash
# The scaling study from start to page, for SEEDS seeds (default 3; PROFILE=quick 2): base models, RL, laws and their
# predictions without a refit, claims, page. PROFILE=quick is a trial run: four sizes, fewer steps.
# Steps whose results exist are skipped; stopped at any moment, it continues when run again.
# Reads nothing (paper: the models of the Hub). Time: see README.md.
source "$(dirname "$0")/../env.sh"
run run_study study=scaling_law report=true "$@"
