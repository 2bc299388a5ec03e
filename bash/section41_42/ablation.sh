#!/usr/bin/env bash
# Ablations (compositionality/config/study/ablation.yaml): how the effect depends on the pretraining text (tokens, compositions,
# calls, number of other functions) and the size of the model. SEEDS (3) of models and training, all evaluated on the first seed's
# validation problems, 500 a level.
# Writes results/STUDY/summary.csv. Tiny: hours on 2 cores. variants=[recipe,wide]: only these.
source "$(dirname "$0")/../env.sh"
run run_study study=ablation "$@"
