#!/usr/bin/env bash
# One arm's rows (preprocess.sh), and SFT of the base model on them, the prompts left out of the loss.
# Reads $MODEL_PATH (default: the profile's base model) and $TRAIN_FILES (default: igsm_task/sft.parquet). Writes sft-ARM
# beside it and $CKPT_DIR/sft-ARM (final/ is the model). Tiny: a minute.
# SFT_LIKE=NAME: as many updates as sft-NAME was trained for, or SFT_BUDGET=tokens, in place of whole epochs.
# Usage: bash bash/behavior_injection/sft.sh ARM [subgoals=true …] [trainer.epochs=5 …]
export SECTION=behavior_injection
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

arm=$(named "${1:-}" "which arm? A name of your own, with keys; those of the study are in compositionality/config/study/$SECTION.yaml")
share "$@"
MODEL_PATH=${MODEL_PATH:-$BASE_MODEL}
OUTPUT=${OUTPUT:-$CKPT_DIR/sft-$arm}
rows=$(dirname "${TRAIN_FILES:-$DATA_DIR/igsm_task/sft.parquet}")/sft-$arm

length=()
if [[ -n ${SFT_LIKE:-} ]]; then
  length=("$("$PYTHON" -m compositionality.study length_like "$CKPT_DIR/sft-$SFT_LIKE" "${SFT_BUDGET:-updates}")")
fi

script behavior_injection/preprocess "$arm" "${@:2}"
run train_sft experiment="$SECTION/sft" engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_file="$rows/train.parquet" data.seed=$((SEED + 1)) \
  trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "${length[@]}" "${@:2}"
