#!/usr/bin/env bash
# Stage 0 of profiles that make their own base model (tiny, smoke, small, single): pretraining from scratch.
# Reads nothing. Writes base, a Hugging Face folder. Tiny: seven to nine minutes on 2 cores.
source "$(dirname "$0")/../env.sh"
OUTPUT=${OUTPUT:-$CKPT/base}

run pretrain_tiny output="$OUTPUT" seed="$SEED" "$@"
