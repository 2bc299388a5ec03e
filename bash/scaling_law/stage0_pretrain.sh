#!/usr/bin/env bash
# A base model of one size, trained from scratch; the keys set its shape.
# Reads nothing. Writes base-85k/model. Tiny: one to five minutes on one core.
# Usage: OUTPUT=… bash bash/scaling_law/stage0_pretrain.sh model.width=48 model.heads=4 model.head_width=12 model.feed_forward=132
source "$(dirname "$0")/../env.sh"
OUTPUT=${OUTPUT:-$CKPT/base-85k/model}

run pretrain_tiny output="$OUTPUT" seed="$SEED" "$@"
