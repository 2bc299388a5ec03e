#!/usr/bin/env bash
# Scaling laws fitted to the runs of all seeds, and what they predict of evaluations that they were not fitted to; figures.
# By what was computed (flops), by the paper's count of it (flops_paper), and by completions.
# Reads metrics.jsonl and final/ of the runs. Writes results/STUDY/scaling_law/RESOURCE. Tiny: three minutes.
source "$(dirname "$0")/../env.sh"
run run_study study=scaling_law "only=[fit-*,figure-*]" "$@"
