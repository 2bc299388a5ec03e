#!/usr/bin/env bash
# Stage 0, for profiles that make their own base model (tiny, smoke, single): pretraining from nothing. Elsewhere
# MODEL_PATH names a pretrained model and this does nothing.
# Reads nothing. Writes $CKPT_DIR/base, a Hugging Face folder. Tiny: about six minutes on 2 cores.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

if declare -p "PRETRAIN_${ENGINE^^}" >/dev/null 2>&1 && [[ -z ${MODEL_PATH:-} ]]; then
  pretrain "${PRETRAIN[@]}" "$@"
fi
