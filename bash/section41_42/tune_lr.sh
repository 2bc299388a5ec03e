#!/usr/bin/env bash
# The learning rate of an arm of Stage 2: the arms of compositionality/config/study/tuning.yaml on validation problems, with seeds
# that no result has. Rule, fixed beforehand: the rate with the highest accuracy, mean over seeds and levels, on trained
# functions; of equal ones the lowest. Held-out functions and test problems choose nothing.
# Tiny: eight minutes a seed, then one for RL and one to six for RFT at each rate, on one core.
# Usage: STUDY=tuning SEED=10 bash bash/section41_42/tune_lr.sh
source "$(dirname "$0")/../env.sh"
run run_study study=tuning "$@"
