#!/usr/bin/env bash
# The dial (compositionality/config/study/dial.yaml): seven pretraining texts, from no composition to plenty; with each, SEEDS (3)
# of base, Stage 1, RL on level 2 and SFT on gold solutions. Evaluated on validation problems, 500 a level.
# Writes results/STUDY/summary.csv. Tiny: hours on 2 cores. variants=[none,pairs]: only these.
source "$(dirname "$0")/../env.sh"
run run_study study=dial "$@"
