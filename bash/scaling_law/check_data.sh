#!/usr/bin/env bash
# What files of several domains hold, in guru's columns or verl's: by data source rows, gold answers in their own judge with
# their mean score, repeated prompts, lengths; a row of each domain; the first row that cannot be used, and why.
# Reads the files, or all files of folders. Writes nothing.
# Usage: bash bash/scaling_law/check_data.sh FILE_OR_FOLDER…
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

files=$(printf ",'%s'" "${@//\'/\'\'}")
run prepare_guru files="[${files#,}]" report_only=true
