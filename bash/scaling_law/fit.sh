#!/usr/bin/env bash
# Scaling laws fitted to the runs of all seeds, their predictions for evaluations outside the fit, and figures.
# Resources: actual compute (flops), the paper's count of it (flops_paper), and completions.
# Reads metrics.jsonl and final/ of the runs. Writes results/STUDY/scaling_law/RESOURCE. Tiny: three minutes.
source "$(dirname "$0")/../env.sh"
run run_study study=scaling_law "only=[fit-*,figure-*]" "$@"
