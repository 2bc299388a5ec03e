#!/usr/bin/env bash
# The table over all seeds, with intervals over seeds, and the figure: accuracy by level, the paper's beside ours.
# Reads accuracy.json of the seeds 0 … SEEDS-1. Writes section41_42/seeds.json, seeds.parquet and
# accuracy_by_level.{png,svg} in seed 0's $RESULTS_DIR; with markdown=README.md the table's place there too. Seconds.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

summarise "$@"
