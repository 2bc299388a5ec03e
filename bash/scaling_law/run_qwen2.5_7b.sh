#!/usr/bin/env bash
# RL of one size of the scaling study, Qwen2.5-7B through verl, in the form of verl's examples, to edit; the arrays are in bash/verl.sh.
# A test checks that its configuration equals that of train.sh with PROFILE=paper. Not run with this model yet.
# Reads a model (a folder or a Hub id) and problems, made by PROFILE=paper prepare_data.sh or your own. Writes run_qwen2.5_7b.
# Usage: [MODEL_PATH=Qwen/Qwen2.5-3B] [N_GPUS=8] [DRY_RUN=1] bash bash/scaling_law/run_qwen2.5_7b.sh [key=value …]
export PROFILE=paper
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODEL_PATH=${MODEL_PATH:-Qwen/Qwen2.5-7B}
levels=("$DATA"/scaling_task/train-level{1..6}.parquet)
TRAIN_FILES=${TRAIN_FILES:-[$(IFS=, && echo "${levels[*]}")]}
VAL_FILES=${VAL_FILES-$DATA/scaling_task/holdout.parquet}
OUTPUT=${OUTPUT:-$CKPT/run_qwen2.5_7b$OWN}
batch=512 responses=8 updates=4 # problems of a step, completions of each, updates of a step
max_prompt=2048 max_response=4096
lr=1e-6 weight_decay=0.1 kl_loss=true kl_type=k3
loss_mean=token-mean entropy=0.0
dynamic_sampling=false reward=binary val_temperature=0.7
epochs=null steps=105 save_freq=10 test_freq=1

source bash/verl.sh
