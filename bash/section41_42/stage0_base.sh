#!/usr/bin/env bash
# Stage 0 of profiles that start from a given model: base, the same weights (linked) with the profile's chat template.
# Reads $BASE_MODEL, a folder or a Hub id, and $CHAT_TEMPLATE (own, plain, llama-3.1, qwen2.5, qwen3 or a Jinja file); default:
# the profile's. Writes base. Takes seconds if the model is on this machine.
source "$(dirname "$0")/../env.sh"
OUTPUT=${OUTPUT:-$CKPT/base}

run set_chat_template ${BASE_MODEL:+model="$BASE_MODEL"} ${CHAT_TEMPLATE:+chat_template="$CHAT_TEMPLATE"} output="$OUTPUT" "$@"
