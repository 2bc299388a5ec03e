#!/usr/bin/env bash
# pass@k for k = 1, 2, 4 … 128 along the training of one size: the base model, each checkpoint that was kept, the end. Does RL
# add problems that are solved at all, or make single samples better? And for each group of problems: what pass@1 gained for
# the FLOPs of training.
# Reads $MODEL_PATH (default: $CKPT_DIR/base-NAME/model), the checkpoints of $CKPT_DIR/rl-NAME, or of a run's folder, and
# $VAL_FILES (default: scaling_task/holdout.parquet). Writes $RESULTS_DIR/passk-NAME; models of verl's checkpoints beside
# them.
# Usage: bash bash/scaling_law/passk.sh NAME|FOLDER [key=value …]
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

name=$(named "${1:-}" "which size? One that bash/scaling_law/train.sh has trained, or the folder of a run")
share "$@"
trained=$CKPT_DIR/rl-$name
if [[ $name == */* ]]; then trained=$name name=$(basename "$name"); fi
models=("base:${MODEL_PATH:-$CKPT_DIR/base-$name/model}")
for step in $(printf '%s\n' "$trained"/steps/global_step_* | sort -V); do
  model=$step/huggingface
  if [[ -d $step/actor ]]; then # of verl, in shards
    model=$step/exported
    run export_checkpoint checkpoint="$step" output="$model"
  fi
  if [[ -d $model ]]; then models+=("step${step##*_}:$model"); fi
done

run passk experiment="$SECTION/passk" models="[$(list "${models[@]}")]" problems="[${VAL_FILES:-$(files scaling_task/holdout)}]" \
  output="${OUTPUT:-$RESULTS_DIR/passk-$name}" engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" \
  n_samples=128 levels=[] per_level=0 "${@:2}"
