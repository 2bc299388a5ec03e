#!/usr/bin/env bash
# One line of the ablation: a base model pretrained with one thing changed, then Stage 1 and RL on level 2 as ever, and
# the validation problems.
# Reads nothing. Writes data, checkpoints and results under …/ablation/NAME. Tiny: eight to twenty minutes on one core.
# PROBLEM_SEED: of all problems (default $SEED), so that runs with several SEEDs are asked the same.
# Usage: bash bash/section41_42/ablation_variant.sh NAME [--force] [key=value …]
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

name=$(named "${1:-}" "which variant? See the list in this file")
shift
case $name in
  recipe) changed=() ;;
  no-composition) changed=(mix.prior_chain=0 mix.visible_chain=0 mix.prior_single=0.17) ;;
  more-composition) changed=(mix.prior_chain=0.18) ;;
  visible-chains) changed=(mix.visible_chain=0.06) ;;
  one-call) changed=(mix.most_calls=1) ;;
  more-tokens) changed=(steps=10000) ;;
  few-functions) changed=(mix.prior_functions=12) ;;
  many-functions) changed=(mix.prior_functions=100) ;;
  narrow) changed=(model.width=48 model.head_width=12 model.feed_forward=132) ;;
  wide) changed=(model.width=96 model.head_width=24 model.feed_forward=264) ;;
  *) fail "no variant $name; they are listed in bash/section41_42/ablation_variant.sh" ;;
esac

export DATA_DIR=$DATA_DIR/ablation/$name CKPT_DIR=$CKPT_DIR/ablation/$name RESULTS_DIR=$RESULTS_DIR/ablation/$name
export SEED_CKPT_DIR=$CKPT_DIR BASE_MODEL=$CKPT_DIR/base EVALUATE_ON=validation
unset MODEL_PATH
script section41_42/stage0_pretrain "${changed[@]}" "$@"
with=(SEED="${PROBLEM_SEED:-$SEED}")
script section41_42/stage1_create_problems "$@"
with=()
script section41_42/stage1_create_train_data "$@"
script section41_42/stage1_rft "$@"
with=(SEED="${PROBLEM_SEED:-$SEED}")
script section41_42/stage2_create_problems "files=[stage2_level2/train]" "$@"
script section41_42/stage2_create_problems "files=[validation*]" per_level=500 "$@"
with=()
script section41_42/stage2_rl_level2 "data.val_files=[]" "$@"
models=$(list "stage1:$CKPT_DIR/stage1-rft/final" "rl-level2:$CKPT_DIR/stage2-rl-level2/final")
script section41_42/evaluate "models=[$models]" "$@"
