#!/usr/bin/env bash
# Stage 2, problems: definitions hidden. Training on the trained functions, tests on compositions of functions that no
# training problem composes.
# Reads nothing. Writes stage2_level1/train, stage2_level2/train, stage2_level1to2/train, the validation and the test
# files; the test problems depend on $TEST_SEED alone. Seconds.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

for name in "${PROBLEM_FILES[@]}"; do
  create_problems "$name" "$@"
done
