#!/usr/bin/env bash
# Stage 2, iterative RFT, problems: those of level 2 in shuffled chunks, one per iteration. Size of a chunk: rows_per_chunk=N, or
# completions_of=RUN: as many completions as RUN sampled, at n_samples per problem. prompts_of=RUN: the problems of this RL run.
# Reads stage2_level2/train.parquet. Writes string_task/rft/problems/{0,1,…}.parquet. Takes seconds.
source "$(dirname "$0")/../env.sh"
PROBLEMS=${PROBLEMS:-$DATA/string_task/stage2_level2/train.parquet}
OUTPUT=${OUTPUT:-$DATA/string_task/rft/problems}

run split_chunks problems="$PROBLEMS" output="$OUTPUT" "$@"
