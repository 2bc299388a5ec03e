#!/usr/bin/env bash
# Stage 2, iterative RFT, problems: level-2 problems cut into one chunk for each iteration.
# RFT_BUDGET=problems: as many in all as RL on level 2 asks; completions, updates, tokens: as many as it samples completions
# ($RFT_RL_ROLLOUTS; by default what the profile's settings say or, with dynamic sampling, the metrics of the finished run) at
# $RFT_MATCHED_SAMPLES of a problem; else $RFT_PROMPTS a chunk.
# Reads stage2_level2/train.parquet. Writes stage2_level2_$RFT/problems/{0,1,…}.parquet (_ for -). Seconds.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

PROBLEMS=${PROBLEMS:-$DATA_DIR/string_task/stage2_level2/train.parquet}
OUTPUT=${OUTPUT:-$DATA_DIR/string_task/stage2_level2_${RFT//-/_}/problems}
case $RFT_BUDGET in
  original) size=(rows_per_chunk="$RFT_PROMPTS") ;;
  problems)
    problems=$("$PYTHON" -m compositionality.study problems "${ARM_NAME:-rft-matched}")
    size=(rows_per_chunk=$((problems / RFT_ITERATIONS))) ;;
  *)
    budget=$("$PYTHON" -m compositionality.study budget "${ARM_NAME:-rft-matched}")
    size=(rollout_budget="$budget" n_samples="$RFT_SAMPLES") ;;
esac

run split_chunks problems="$PROBLEMS" output="$OUTPUT" chunks="$RFT_ITERATIONS" "${size[@]}" "$@"
