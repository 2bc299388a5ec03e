#!/usr/bin/env bash
# pass@k before and after RL on the harder problems: does RL solve problems that the SFT model never solves in many samples?
# Works as section44/passk.sh; see there.
# Reads sft-vanilla and rl-vanilla (others: models=[NAME:PATH,…]) and igsm_task/test_ood.parquet. Writes
# section44. Tiny: two minutes on 2 cores.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-[sft-vanilla:$CKPT/sft-vanilla/final,rl-vanilla:$CKPT/rl-vanilla/final]}
PROBLEMS=${PROBLEMS:-$DATA/igsm_task/test_ood.parquet}
OUTPUT=${OUTPUT:-$RESULTS/section44$OWN}

run passk models="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" levels=[] ${N_SAMPLES:+n_samples="$N_SAMPLES"} "$@"
