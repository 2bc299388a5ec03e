#!/usr/bin/env bash
# The table over all seeds, with intervals over seeds, and the figure: accuracy on Countdown by level, the paper's beside
# ours.
# Reads results.parquet of the seeds 0 … SEEDS-1. Writes section43/seeds.json and
# accuracy_by_level.png in seed 0's $RESULTS_DIR; with markdown=results/README.md the table's place there too. Seconds.
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

OUTPUT=${OUTPUT:-$RESULTS_DIR/section43}
INPUTS=${INPUTS:-$("$PYTHON" -m compositionality.study seeds section43/results.parquet)}

run summarise_seeds inputs="[$INPUTS]" output="$OUTPUT/seeds.json" place=section43 "$@"
run draw_figure seeds="$OUTPUT/seeds.json" output="$OUTPUT/accuracy_by_level" title="$STUDY" "$@"
