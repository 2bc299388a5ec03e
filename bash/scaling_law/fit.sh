#!/usr/bin/env bash
# Scaling laws fitted to the runs of all seeds, and what they predict of evaluations that they were not fitted to; figures.
# By what was computed (flops), by the paper's count of it (flops_paper), and by completions. RESOURCES: others.
# Reads metrics.jsonl and final/ of $CKPT_DIR/rl-* of the seeds 0 … SEEDS-1 ($RUNS: NAME:FOLDER,…). Writes
# $RESULTS_DIR/scaling_law/RESOURCE/{scaling.json,scaling_points.csv,figures}. Tiny: three minutes.
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

RUNS=${RUNS:-$("$PYTHON" -m compositionality.study sizes)}
if [[ -z $RUNS && $ARMS == *rl-[0-9]* ]]; then fail "no run of $ARMS in $CKPT_DIR; run: bash bash/scaling_law/run_seed.sh"; fi
if [[ -z $RUNS ]]; then echo "no sizes among ARMS=$ARMS: no laws" >&2 && exit; fi
for resource in ${RESOURCES:-flops flops_paper completions}; do
  output=${OUTPUT:-$RESULTS_DIR/$SECTION}/$resource
  run fit_scaling points="[$RUNS]" resource="$resource" metric='val-core/*' output="$output" "$@"
  run draw_scaling fits="$output/scaling.json" output="$output/figures" "$@"
done
