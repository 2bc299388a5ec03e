#!/usr/bin/env bash
# Stage 2, iterative RFT, problems: level-2 problems cut into one chunk for each iteration.
# Reads stage2_level2/train.parquet. Writes stage2_level2_rft/problems/{0,1,…}.parquet. Seconds.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

step split_chunks problems="$STRING/stage2_level2/train.parquet" output="$STRING/stage2_level2_rft/problems" \
  chunks="$RFT_ITERATIONS" rows_per_chunk="$RFT_PROMPTS" "$@"
