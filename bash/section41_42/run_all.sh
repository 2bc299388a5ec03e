#!/usr/bin/env bash
# Sections 4.1 and 4.2 from start to table and figure, for SEEDS seeds (default 1).
# Steps whose results exist are skipped; stopped at any moment, it continues when run again.
# Reads BASE_MODEL (default: the profile's; some profiles make their own). Paper: days on a node of 8 GPUs.
# Usage: bash bash/section41_42/run_all.sh [STEP:key=value …] [arms=[…]]
source "$(dirname "$0")/../env.sh"
run run_study study=section41_42 "$@"
