#!/usr/bin/env bash
# Tunes the learning rate of Stage-2 arms: trains the arms of compositionality/config/study/tuning.yaml on seeds that no result
# uses. Rule, fixed beforehand: the rate with the highest validation accuracy on trained functions (mean over seeds and levels); on
# a tie the lowest. Held-out functions and test problems are not used.
# Tiny: eight minutes a seed, then one for RL and one to six for RFT at each rate, on one core.
# Usage: STUDY=tuning SEED=10 bash bash/section41_42/tune_lr.sh
source "$(dirname "$0")/../env.sh"
run run_study study=tuning "$@"
