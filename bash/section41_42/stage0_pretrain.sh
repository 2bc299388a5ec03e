#!/usr/bin/env bash
# Stage 0, for profiles that make their own base model (tiny, smoke, single): pretraining from nothing. Elsewhere
# MODEL_PATH names a pretrained model and this does nothing.
# Reads nothing. Writes $CKPT_DIR/base, a Hugging Face folder. Tiny: about five minutes on 2 cores.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

if [[ -z $PRETRAINS || -n ${MODEL_PATH:-} ]]; then exit; fi
OUTPUT=${OUTPUT:-$BASE_MODEL}
WORKERS=${WORKERS:-$([[ $DEVICE == gpu ]] && echo $((CORES > 3 ? CORES - 2 : 1)) || echo 0)} # make text ahead of a GPU

run pretrain_tiny experiment="$SECTION/stage0_pretrain" output="$OUTPUT" seed="$SEED" workers="$WORKERS" \
  run.device="$DEVICE" run.processes="$PROCESSES" "$@"
