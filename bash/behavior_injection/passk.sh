#!/usr/bin/env bash
# pass@k before and after RL on the harder problems: does RL solve what the SFT model solves in none of many samples? As
# section44/passk.sh, which says more.
# Reads the models $PASSK_MODELS that are there and igsm_task/test_ood.parquet. Writes $RESULTS_DIR/section44. Tiny: two
# minutes on 2 cores.
export SECTION=behavior_injection
export PASSK_MODELS=${PASSK_MODELS:-sft-vanilla rl-vanilla sft-bridge rl-bridge} PASSK_FILES=${PASSK_FILES:-igsm_task/test_ood}
set -- levels=[] "$@" # the profile's are those of strings
source "$(dirname "${BASH_SOURCE[0]}")/../section44/passk.sh"
