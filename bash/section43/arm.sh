#!/usr/bin/env bash
# One arm of the table from its training to its answers to the test problems: ARM is multi-rl-level1, multi-rl-level1to2 or
# string-rl-level1to2; string-base and multi-base are only asked. This is what runs in a lane.
# Reads the Stage-1 models, the string training files and the Countdown test file. Writes the arm's run folder under
# $CKPT_DIR and its answers under $RESULTS_DIR/section43/rollouts. Tiny: two to three minutes on one core.
# Usage: bash bash/section43/arm.sh ARM [--force]
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

name=${1:?which arm? multi-rl-level1 multi-rl-level1to2 string-rl-level1to2 multi-base string-base}
shift
model=$(model_of "$name")
case $name in
  multi-rl-level1) script section43/stage2_rl_level1 "$@" ;;
  *-rl-level1to2) START=${name%%-*} script section43/stage2_rl_level1to2 "$@" ;;
esac
MODEL_NAME=$name MODEL_PATH=$model script section43/evaluate answers_only=true "$@"
