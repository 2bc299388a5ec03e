#!/usr/bin/env bash
# The report of a study: one HTML page with the claims, every figure, completions to read, what is known of the data, settings.
# First the audit of the test files: solved again, checked for overlap with the training files.
# Reads results/STUDY, checkpoints/STUDY, data/STUDY. Writes results/STUDY/report. study=behavior_injection or scaling_law: of those.
# Usage: bash bash/report.sh [page:check=true]; check writes nothing and refuses a page that is no longer what it shows
# STUDY=NAME of a registration: claims, page and record of its committed tables; nothing is trained, no key=value is taken.
source "$(dirname "$0")/env.sh"
run run_study study=section41_42 "only=[audit,page]" "$@"
