#!/usr/bin/env bash
# Section 4.3 from start to table and figure, for SEEDS seeds (default 1). STUDY=composition-paper PROFILE=paper reuses
# the Stage-1 model of section 4.1.
# Steps whose results exist are skipped; stopped at any moment, it continues when run again.
# Reads BASE_MODEL (default: the profile's; some profiles make their own). Time: see README.md.
source "$(dirname "$0")/../env.sh"
run run_study study=section43 "$@"
