#!/usr/bin/env bash
# Stage 2, iterative RFT, problems: level-2 problems cut into one chunk for each iteration.
# RFT_BUDGET=rl: as many completions in all as RL on level 2 samples ($RFT_RL_ROLLOUTS; by default what the profile's settings
# say or, with dynamic sampling, the metrics of the finished run), $RFT_MATCHED_SAMPLES of a problem, instead of
# $RFT_PROMPTS problems a chunk and $RFT_SAMPLES completions of each; in stage2_level2_rft_matched/ instead of stage2_level2_rft/.
# Reads stage2_level2/train.parquet. Writes stage2_level2_rft/problems/{0,1,…}.parquet. Seconds.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

PROBLEMS=${PROBLEMS:-$DATA_DIR/string_task/stage2_level2/train.parquet}
OUTPUT=${OUTPUT:-$DATA_DIR/string_task/stage2_level2_${RFT//-/_}/problems}
if [[ $RFT_BUDGET == rl ]]; then
  budget=$("$PYTHON" -m compositionality.study budget rft-matched)
  size=(rollout_budget="$budget" n_samples="$RFT_SAMPLES")
else
  size=(rows_per_chunk="$RFT_PROMPTS")
fi

run split_chunks problems="$PROBLEMS" output="$OUTPUT" chunks="$RFT_ITERATIONS" "${size[@]}" "$@"
