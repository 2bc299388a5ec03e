#!/usr/bin/env bash
# SFT rows of one arm: solutions of the same problems as for every other arm, with what the keys inject.
# Reads $TRAIN_FILES (default: igsm_task/sft.parquet). Writes sft-ARM beside it. Tiny: seconds.
# SFT_PART=4: of the first quarter of the problems alone.
# Usage: bash bash/behavior_injection/preprocess.sh ARM [subgoals=true] [analysis=2] [reflection=0.1] [prompt_orders=4] …
export SECTION=behavior_injection
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

arm=$(named "${1:-}" "which arm? A name of your own, with keys; those of the study are in compositionality/config/study/$SECTION.yaml")

problems=${TRAIN_FILES:-$DATA_DIR/igsm_task/sft.parquet}

part=()
if [[ -n ${SFT_PART:-} ]]; then
  if [[ ! $SFT_PART =~ ^[1-9][0-9]{0,5}$ ]] || ((SFT_PART > IGSM_SFT_COUNT)); then
    fail "SFT_PART=$SFT_PART: give a whole number from 1 to $IGSM_SFT_COUNT"
  fi
  part=(limit=$((IGSM_SFT_COUNT / SFT_PART)))
fi

run write_solutions problems="$problems" output="$(dirname "$problems")/sft-$arm" seed=$((SEED + 1)) "${part[@]}" "${@:2}"
