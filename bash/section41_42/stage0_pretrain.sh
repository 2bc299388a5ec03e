#!/usr/bin/env bash
# Stage 0, tiny profile only: a base model from nothing. Elsewhere MODEL_PATH names a pretrained model and this does nothing.
# Reads nothing. Writes $CKPT_DIR/base, a Hugging Face folder. Tiny: about five minutes on 2 cores.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

if [[ $PROFILE == tiny && -z ${MODEL_PATH:-} ]]; then
  step pretrain_tiny output="$BASE_MODEL" seed="$SEED" "${PRETRAIN[@]}" "$@"
fi
