#!/usr/bin/env bash
# The table over all seeds, with intervals over seeds, and the figure: accuracy by level, the paper's beside ours.
# Reads results.parquet of the seeds 0 … SEEDS-1. Writes section41_42/seeds.json and
# accuracy_by_level.png in seed 0's $RESULTS_DIR; with markdown=results/README.md the table's place there too. Seconds.
# MODELS: these arms alone (of a registered study: those of every replicate).
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

OUTPUT=${OUTPUT:-$RESULTS_DIR/section41_42}
INPUTS=${INPUTS:-$("$PYTHON" -m compositionality.study seeds section41_42/results.parquet)}
models=()
if [[ -n ${MODELS:-} ]]; then models=(models="[${MODELS// /,}]"); fi
"$PYTHON" -m compositionality.study recipes

run summarise_seeds inputs="[$INPUTS]" "${models[@]}" output="$OUTPUT/seeds.json" place=section41_42 "$@"
run draw_figure seeds="$OUTPUT/seeds.json" output="$OUTPUT/accuracy_by_level" title="$STUDY" "$@"
