#!/usr/bin/env bash
# The table over all seeds, with intervals over seeds and the verdicts on the paper's claims, and the figure: accuracy by
# level, the paper's beside ours.
# Reads accuracy.json of the seeds 0 … SEEDS-1. Writes section41_42/seeds.json, seeds.parquet and
# accuracy_by_level.{png,svg} in seed 0's $RESULTS_DIR. Seconds.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

inputs=()
for ((seed = SEED; seed < SEED + SEEDS; seed++)); do
  suffix=""
  if ((seed != SEED)); then suffix=-seed$seed; fi
  inputs+=("seed$seed:$RESULTS_DIR$suffix/section41_42/accuracy.json")
done
step summarise_seeds "inputs=[$(IFS=,; echo "${inputs[*]}")]" output="$RESULTS_DIR/section41_42/seeds.json" "$@"
step draw_figure seeds="$RESULTS_DIR/section41_42/seeds.json" output="$RESULTS_DIR/section41_42/accuracy_by_level" \
  title="$study" "$@"
