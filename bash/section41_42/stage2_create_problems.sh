#!/usr/bin/env bash
# Stage 2, problems: definitions hidden. Which files, and of what: compositionality/config/problems/string.yaml.
# Reads nothing. Writes string_task/stage2*/train, the validation and the test files (files=[NAME,…]: these alone); the test
# problems depend on TEST_SEED and SPLIT alone. Seconds.
source "$(dirname "$0")/../env.sh"
OUTPUT=${OUTPUT:-$DATA/string_task}

run create_problems set=string files="[stage2*,validation*,test*]" output="$OUTPUT" shared="${DATA%/*}/string_task" \
  seed="$SEED" test_seed="$TEST_SEED" function_split="$SPLIT" "$@"
