#!/usr/bin/env bash
# Stage 2, problems without definitions. The files are listed in compositionality/config/problems/string.yaml.
# Reads nothing. Writes string_task/stage2*/train, the validation and the test files (files=[NAME,…]: only these); the test
# problems depend only on TEST_SEED and SPLIT. Takes seconds.
source "$(dirname "$0")/../env.sh"
OUTPUT=${OUTPUT:-$DATA/string_task}

run create_problems set=string files="[stage2*,validation*,test*]" output="$OUTPUT" shared="${DATA%/*}/string_task" \
  seed="$SEED" test_seed="$TEST_SEED" function_split="$SPLIT" "$@"
