#!/usr/bin/env bash
# RL on strings of levels 1 and 2 from the multi-base model, Llama-3.1-8B-Instruct through verl, in the form of verl's examples, to edit;
# the arrays are in bash/verl.sh. A test checks that it equals stage2_rl_level1to2.sh with PROFILE=paper. Not run with this model yet.
# Reads a Stage-1 model and problems, made by PROFILE=paper run_all.sh or your own. Writes run_llama3.1_8b; evaluate.sh tests it.
# Usage: [MODEL_PATH=…] [N_GPUS=8] [DRY_RUN=1] bash bash/section43/run_llama3.1_8b.sh [key=value …]
export PROFILE=paper
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODEL_PATH=${MODEL_PATH:-$CKPT/stage1-multi/final}
TRAIN_FILES=${TRAIN_FILES:-[$DATA/string_task/stage2_level1/train.parquet,$DATA/string_task/stage2_level2/train.parquet]}
VAL_FILES=${VAL_FILES-$DATA/string_task/stage2_level1to8/test.parquet}
OUTPUT=${OUTPUT:-$CKPT/run_llama3.1_8b$OWN}
batch=16 responses=16 updates=1 # problems of a step, completions of each, updates of a step
max_prompt=1024 max_response=8192
lr=1e-6 weight_decay=0.01 kl_loss=false kl_type=low_var_kl
loss_mean=token-mean entropy=0.0
dynamic_sampling=true reward=paper val_temperature=1.0
epochs=1 steps=null save_freq=25 test_freq=25

source bash/verl.sh
