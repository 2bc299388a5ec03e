#!/usr/bin/env bash
# What the effect depends on: the pretraining text (its tokens, compositions, calls, number of other functions), the size of the
# model: compositionality/config/study/ablation.yaml. SEEDS (3) of models and training, all on the problems of the first:
# validation problems, 500 a level.
# Writes results/STUDY/summary.csv. Tiny: hours on 2 cores. variants=[recipe,wide]: only these.
source "$(dirname "$0")/../env.sh"
run run_study study=ablation "$@"
