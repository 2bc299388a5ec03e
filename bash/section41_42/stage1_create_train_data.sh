#!/usr/bin/env bash
# Stage 1, training data: the base model answers with the definitions in sight; correct answers are kept and the
# definitions taken out of their prompts, so that the next step must learn what each name means.
# Reads $MODEL_PATH (default: the profile's base model) and stage1_level1/train.parquet.
# Writes stage1_level1_rft/{rollouts/,data/{train,test}.parquet}. Tiny: a minute. Paper: 500,000 responses, hours on 8 GPUs.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

data=string_task/stage1_level1
collect "${MODEL_PATH:-$BASE_MODEL}" $data/train ${data}_rft/rollouts n_samples="$STAGE1_SAMPLES" "$@"
keep_correct $data/train ${data}_rft/rollouts ${data}_rft/data hide_definitions=true $(force_in "$@")
