#!/usr/bin/env bash
# The report of a study: one HTML page with the claims, every figure, completions to read, the audit of the data, settings.
# First the test files are audited: solved again and checked for overlap with the training files.
# Reads results/STUDY, checkpoints/STUDY, data/STUDY. Writes results/STUDY/report. study=behavior_injection or scaling_law: that study.
# Usage: bash bash/report.sh [page:check=true]; check writes nothing and fails if the page is out of date
# STUDY=NAME of a registration: claims, page and record from its committed tables; nothing is trained, key=value is refused.
source "$(dirname "$0")/env.sh"
run run_study study=section41_42 "only=[audit,page]" "$@"
