#!/usr/bin/env bash
# The record of a study, for a commit: command, versions, machine, times, tables, claims, every step of every training, counts
# by problem, figure, a page. Reads results/STUDY and checkpoints/STUDY. Writes the folder results/records/STUDY. Takes seconds.
# Usage: [SEEDS=3] bash bash/record.sh [record:force=true] [record:command="'…'"] [record:notes="['…']"]
source "$(dirname "$0")/env.sh"
run run_study study=section41_42 "only=[record]" "$@"
