#!/usr/bin/env bash
# One model of Stage 2 from its training to its answers to the test problems: ARM is rl-level1, rl-level2, rl-level1to2,
# rft or rft-matched (as many answers as RL sampled); rl-level2-shuffled and rl-level2-format are negative controls; base and
# stage1 are only asked. This is what runs in a lane.
# Reads $CKPT_DIR/stage1-rft/final, the training and the test files. Writes the model's run folders under $CKPT_DIR and
# its answers under $RESULTS_DIR/section41_42/rollouts. Tiny: one to four minutes on one core.
# Usage: bash bash/section41_42/arm.sh ARM [--force]
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

name=${1:?which arm? rl-level1 rl-level2 rl-level1to2 rft rft-matched rl-level2-shuffled rl-level2-format base stage1}
shift
model=$(model_of "$name")
case $name in
  rl-level2-shuffled | rl-level2-format) CONTROL=${name##*-} script section41_42/stage2_rl_control "$@" ;;
  rl-*) script "section41_42/stage2_${name//-/_}" "$@" ;;
  rft) RFT_BUDGET=original script section41_42/stage2_rft_loop "$@" ;;
  rft-matched) RFT_BUDGET=rl script section41_42/stage2_rft_loop "$@" ;;
esac
evaluate section41_42 "$name:$model" answers_only=true "$@"
