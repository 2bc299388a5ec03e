#!/usr/bin/env bash
# Section 4.3 from nothing to the table and the figure, for SEEDS seeds (default 1). STUDY=composition-paper PROFILE=paper uses
# the Stage-1 model of section 4.1 that is there.
# Steps whose results exist are skipped; stopped at any moment, it continues when run again.
# Reads BASE_MODEL (default: the profile's; some profiles make their own). Time: see README.md.
source "$(dirname "$0")/../env.sh"
run run_study study=section43 "$@"
