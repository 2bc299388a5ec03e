#!/usr/bin/env bash
# The record of a study, to be committed: settings, versions, machine, times, table, claims, every training's figures.
# Reads results/STUDY and checkpoints/STUDY. Writes results/records/STUDY.json. Seconds.
# Usage: [SEEDS=3] bash bash/record.sh [record:force=true] [record:command="'…'"] [record:notes="['…']"]
source "$(dirname "$0")/env.sh"
run run_study study=section41_42 "only=[record]" "$@"
