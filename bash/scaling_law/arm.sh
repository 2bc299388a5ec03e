#!/usr/bin/env bash
# One arm from its training to its completions of the test problems: ARM is a name in compositionality/config/study/
# scaling_law.yaml (base-15k, rl-15k …). This is what runs in a lane.
# Reads the model that the arm starts from and the problems. Writes the arm's run folder under $CKPT_DIR and its completions
# under $RESULTS_DIR/scaling_law/rollouts. Tiny: one to five minutes on one core.
# Usage: bash bash/scaling_law/arm.sh ARM [--force] [key=value …]
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../section41_42/arm.sh"
