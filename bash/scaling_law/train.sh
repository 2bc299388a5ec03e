#!/usr/bin/env bash
# RL of one size; every few steps its loss on the hold-out, and what has been computed until then.
# Reads $MODEL_PATH (default: $CKPT_DIR/base-NAME/model), $TRAIN_FILES and $VAL_FILES (default: scaling_task/train-level*.parquet
# and holdout.parquet). Writes $OUTPUT (default: $CKPT_DIR/rl-NAME): metrics.jsonl, of which the laws are made, final/, and
# checkpoints along the way. Tiny: one to four minutes on one core.
# ALGORITHM: one of compositionality/config/algorithm/ (grpo, dr_grpo, dapo, rloo, reinforce_plus_plus, ppo …) or a YAML file.
# Usage: [ALGORITHM=reinforce_plus_plus] bash bash/scaling_law/train.sh NAME [model.lora.rank=32] [key=value …]
export SECTION=scaling_law
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

name=$(named "${1:-}" "which size? One that bash/scaling_law/pretrain.sh has made, or any name with MODEL_PATH")
MODEL_PATH=${MODEL_PATH:-$CKPT_DIR/base-$name/model}
OUTPUT=${OUTPUT:-$CKPT_DIR/rl-$name${ALGORITHM:+-$(basename "$ALGORITHM" .yaml)}}
TRAIN_FILES=${TRAIN_FILES:-$(files $SCALING_TRAIN_FILES)}
VAL_FILES=${VAL_FILES-$(files scaling_task/holdout)}
algorithm=()
if [[ -n ${ALGORITHM:-} ]]; then algorithm=(algorithm="$ALGORITHM"); fi

run train_grpo experiment="$SECTION/train" engine="$ENGINE" model.path="$MODEL_PATH" "${algorithm[@]}" \
  data.train_files="[$TRAIN_FILES]" data.val_files="[$VAL_FILES]" data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) \
  rollout.engine="$RL_ROLLOUT_ENGINE" trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "${@:2}"
