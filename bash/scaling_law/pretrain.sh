#!/usr/bin/env bash
# A base model of one size, made from nothing: the keys are its shape.
# Reads nothing. Writes $CKPT_DIR/base-NAME/model. Tiny: one to five minutes on one core.
# Usage: bash bash/scaling_law/pretrain.sh NAME model.width=48 model.heads=4 model.head_width=12 model.feed_forward=132
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

name=$(named "${1:-}" "which size? A name of your own, with keys; those of the study are in compositionality/config/study/$SECTION.yaml")

run pretrain_tiny experiment="$SECTION/stage0_pretrain" output="${OUTPUT:-$CKPT_DIR/base-$name}/model" seed="$SEED" \
  run.device="$DEVICE" run.processes="$PROCESSES" "${@:2}"
