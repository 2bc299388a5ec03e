#!/usr/bin/env bash
# iGSM problems, the same for all arms, by number of operations. Which files: compositionality/config/problems/igsm.yaml.
# Reads nothing. Writes igsm_task/{sft,rl,validation,queries,test,test_ood}.parquet; test problems, and the queries of influence.sh,
# depend on TEST_SEED alone. Tiny: half a minute.
source "$(dirname "$0")/../env.sh"
OUTPUT=${OUTPUT:-$DATA/igsm_task}

run create_problems set=igsm output="$OUTPUT" seed="$SEED" test_seed="$TEST_SEED" "$@"
