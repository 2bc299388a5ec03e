#!/usr/bin/env bash
# pass@k for k = 1, 2, 4 … 128 along the training of one size: the base model, each checkpoint that was kept, the end. Does RL
# add problems that are solved at all, or make single samples better?
# Reads $CKPT_DIR/{base-NAME,rl-NAME} and scaling_task/holdout.parquet. Writes $RESULTS_DIR/passk-NAME. Tiny: five minutes.
# Usage: bash bash/scaling_law/passk.sh NAME [key=value …]
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

name=$(named "${1:-}" "which size? One that bash/scaling_law/train.sh has trained")
models=("base:${MODEL_PATH:-$CKPT_DIR/base-$name/model}")
for folder in $(printf '%s\n' "$CKPT_DIR/rl-$name"/steps/global_step_*/huggingface | sort -V); do
  step=${folder%/huggingface} step=${step##*_}
  if [[ -d $folder ]]; then models+=("step$step:$folder"); fi
done

run passk experiment="$SECTION/passk" models="[$(list "${models[@]}")]" problems="[$(files scaling_task/holdout)]" \
  output="${OUTPUT:-$RESULTS_DIR/passk-$name}" engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" "${@:2}"
