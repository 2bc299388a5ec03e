#!/usr/bin/env bash
# The table over all seeds, with intervals over seeds, and the figure: accuracy before and after RL, by size and level.
# Reads results.parquet of the seeds 0 … SEEDS-1. Writes scaling_law/seeds.json and accuracy_by_level.png
# in seed 0's $RESULTS_DIR; with markdown=results/README.md the table's place there too. Seconds.
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

OUTPUT=${OUTPUT:-$RESULTS_DIR/$SECTION}
INPUTS=${INPUTS:-$("$PYTHON" -m compositionality.study seeds "$SECTION/results.parquet")}

run summarise_seeds inputs="[$INPUTS]" output="$OUTPUT/seeds.json" place="$SECTION" "$@"
run draw_figure seeds="$OUTPUT/seeds.json" output="$OUTPUT/accuracy_by_level" title="$STUDY" "$@"
