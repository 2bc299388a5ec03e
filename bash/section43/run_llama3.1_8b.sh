#!/usr/bin/env bash
# RL on strings of levels 1 and 2 from the multi-base model, Llama-3.1-8B-Instruct through verl: section41_42/run_llama3.1_8b.sh, where
# its settings are, with other files. A test holds it to stage2_rl_level1to2.sh with PROFILE=paper. Not run with this model yet.
# Reads a Stage-1 model and problems, of PROFILE=paper run_all.sh or your own. Writes run_llama3.1_8b; evaluate.sh answers Countdown.
# Usage: [MODEL_PATH=…] [N_GPUS=8] [DRY_RUN=1] bash bash/section43/run_llama3.1_8b.sh [key=value …]
export PROFILE=paper
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

export MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-multi/final}
export TRAIN_FILES=${TRAIN_FILES:-[$DATA/string_task/stage2_level1/train.parquet,$DATA/string_task/stage2_level2/train.parquet]}
export VAL_FILES=${VAL_FILES-$DATA/string_task/stage2_level1to8/test.parquet}
export OUTPUT=${OUTPUT:-$CKPT/run_llama3.1_8b$OWN}

exec bash bash/section41_42/run_llama3.1_8b.sh "$@"
