#!/usr/bin/env bash
# Stage 0 of profiles that make their own base model (tiny, smoke, small, single): pretraining from scratch.
# As in section 4.1, on text of iGSM problems.
# Reads nothing. Writes base. Tiny: ten minutes on 2 cores.
source "$(dirname "$0")/../env.sh"
OUTPUT=${OUTPUT:-$CKPT/base}

run pretrain_tiny output="$OUTPUT" seed="$SEED" "$@"
