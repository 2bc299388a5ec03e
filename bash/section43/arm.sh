#!/usr/bin/env bash
# One arm from its training to its completions of the Countdown test problems: ARM is a name in compositionality/config/
# study/section43.yaml (multi-rl-level1to2 …); string-base and multi-base are only evaluated. This is what runs in a lane.
# Reads the Stage-1 models, the string training files and the Countdown test files. Writes the arm's run folder under
# $CKPT_DIR and its completions under $RESULTS_DIR/section43/rollouts. Tiny: two to three minutes on one core.
# Usage: bash bash/section43/arm.sh ARM [--force]
export SECTION=section43
source "$(dirname "${BASH_SOURCE[0]}")/../section41_42/arm.sh"
