#!/usr/bin/env bash
# Stage 0, for profiles that make their own base model (tiny, smoke): pretraining from nothing. Elsewhere MODEL_PATH names a
# pretrained model and this does nothing.
# Reads nothing. Writes $CKPT_DIR/base, a Hugging Face folder. Tiny: about five minutes on 2 cores.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

if [[ -v PRETRAIN && -z ${MODEL_PATH:-} ]]; then
  step pretrain_tiny output="$BASE_MODEL" seed="$SEED" "${PRETRAIN[@]}" "$@"
fi
