#!/usr/bin/env bash
# One arm from its training to its completions of the test problems: ARM is a name in compositionality/config/study/
# behavior_injection.yaml (sft-bridge, rl-bridge …). This is what runs in a lane.
# Reads the model that the arm starts from and the problems. Writes the arm's run folder under $CKPT_DIR and its completions
# under $RESULTS_DIR/behavior_injection/rollouts. Tiny: a minute for SFT, six for RL, on one core.
# Usage: bash bash/behavior_injection/arm.sh ARM [--force] [key=value …]
export SECTION=behavior_injection
source "$(dirname "${BASH_SOURCE[0]}")/../section41_42/arm.sh"
