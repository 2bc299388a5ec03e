#!/usr/bin/env bash
# Stage 2, iterative RFT, problems: level-2 problems cut into one chunk for each iteration.
# RFT_BUDGET=rl: as many answers in all as RL samples ($RL_ROLLOUTS), $RFT_MATCHED_SAMPLES to a problem, instead of
# $RFT_PROMPTS problems a chunk and $RFT_SAMPLES answers to each; in stage2_level2_rft_matched/ instead of stage2_level2_rft/.
# Reads stage2_level2/train.parquet. Writes stage2_level2_rft/problems/{0,1,…}.parquet. Seconds.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

if [[ $RFT_BUDGET == rl ]]; then
  size=(rollout_budget="$RL_ROLLOUTS" n_samples="$RFT_SAMPLES")
else
  size=(rows_per_chunk="$RFT_PROMPTS")
fi
step split_chunks problems="$DATA_DIR/string_task/stage2_level2/train.parquet" output="$DATA_DIR/$RFT_DATA/problems" \
  chunks="$RFT_ITERATIONS" "${size[@]}" "$@"
