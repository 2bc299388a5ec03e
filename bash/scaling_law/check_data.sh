#!/usr/bin/env bash
# Prints a summary of files of several domains, in guru's columns or verl's. Per data source: rows, the mean score of gold answers
# in their own judge, repeated prompts, lengths. Also an example row of each domain, and the first unusable row with the reason.
# Reads the files, or all files of folders. Writes nothing.
# Usage: bash bash/scaling_law/check_data.sh FILE_OR_FOLDER…
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

files=$(printf ",'%s'" "${@//\'/\'\'}")
run prepare_guru files="[${files#,}]" report_only=true
