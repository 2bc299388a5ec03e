#!/usr/bin/env bash
# Behaviour injection from start to page, for SEEDS seeds (default 1).
# Steps whose results exist are skipped; stopped at any moment, it continues when run again.
# Reads BASE_MODEL (default: the profile's; some profiles make their own). Time: see README.md.
source "$(dirname "$0")/../env.sh"
run run_study study=behavior_injection report=true "$@"
