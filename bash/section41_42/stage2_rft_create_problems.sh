#!/usr/bin/env bash
# Stage 2, iterative RFT, problems: those of level 2 in shuffled chunks, one for each iteration. rows_per_chunk=N; or as many as
# completions_of=RUN has sampled completions, n_samples of a problem. prompts_of=RUN: the problems that this run of RL was asked.
# Reads stage2_level2/train.parquet. Writes string_task/rft/problems/{0,1,…}.parquet. Seconds.
source "$(dirname "$0")/../env.sh"
PROBLEMS=${PROBLEMS:-$DATA/string_task/stage2_level2/train.parquet}
OUTPUT=${OUTPUT:-$DATA/string_task/rft/problems}

run split_chunks problems="$PROBLEMS" output="$OUTPUT" "$@"
