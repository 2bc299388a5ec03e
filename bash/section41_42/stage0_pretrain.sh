#!/usr/bin/env bash
# Stage 0. For profiles that make their own base model (tiny, smoke, single): pretraining from nothing. With a CHAT_TEMPLATE
# other than own: the base model ($MODEL_PATH or $BASE_MODEL) with that template, its weights linked. Elsewhere nothing.
# Reads nothing, or that model. Writes $CKPT_DIR/base, a Hugging Face folder. Tiny: about five minutes on 2 cores.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

if [[ $CHAT_TEMPLATE != own ]]; then
  run set_chat_template experiment="$SECTION/stage0_pretrain" model="${MODEL_PATH:-$SOURCE_MODEL}" \
    output="${OUTPUT:-$BASE_MODEL}" chat_template="$CHAT_TEMPLATE" "$@"
  exit
fi
if [[ -z $PRETRAINS || -n ${MODEL_PATH:-} ]]; then exit; fi
OUTPUT=${OUTPUT:-$BASE_MODEL}
WORKERS=${WORKERS:-$([[ $DEVICE == gpu ]] && echo $((CORES > 3 ? CORES - 2 : 1)) || echo 0)} # make text ahead of a GPU

run pretrain_tiny experiment="$SECTION/stage0_pretrain" output="$OUTPUT" seed="$SEED" workers="$WORKERS" \
  run.device="$DEVICE" run.processes="$PROCESSES" "$@"
