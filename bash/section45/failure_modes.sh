#!/usr/bin/env bash
# What goes wrong in existing completions, by program: one class per completion, shares with intervals, functions and pairs that
# fail. Samples nothing. Prints level 3; the files contain all levels.
# Reads section41_42/rollouts (evaluation=FOLDER) and the test files. Writes section45/{results.parquet,labels.parquet}; the page
# draws them. Takes seconds. models=[base,stage1]: only these. judge=true asks a language model too: JUDGE_BASE_URL,
# JUDGE_MODEL, JUDGE_API_KEY (see README.md here).
source "$(dirname "$0")/../env.sh"
PROBLEMS=${PROBLEMS:-$DATA/@test}
OUTPUT=${OUTPUT:-$RESULTS/section45}

run failure_modes evaluation="$RESULTS/section41_42" problems="$PROBLEMS" output="$OUTPUT" "$@"
