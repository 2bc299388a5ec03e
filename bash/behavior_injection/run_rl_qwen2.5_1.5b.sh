#!/usr/bin/env bash
# RL of one arm's SFT model, Qwen2.5-1.5B through verl, in the form of verl's examples, to edit; the arrays are in bash/verl.sh.
# A test checks that its configuration equals that of rl.sh with PROFILE=paper. Not run with this model yet.
# Reads an SFT model and problems, made by PROFILE=paper run_all.sh or your own. Writes run_rl_qwen2.5_1.5b; evaluate.sh tests it.
# Usage: [MODEL_PATH=…] [N_GPUS=2] [DRY_RUN=1] bash bash/behavior_injection/run_rl_qwen2.5_1.5b.sh [key=value …]
export PROFILE=paper
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODEL_PATH=${MODEL_PATH:-$CKPT/sft-plain/final}
TRAIN_FILES=${TRAIN_FILES:-$DATA/igsm_task/rl.parquet}
VAL_FILES=${VAL_FILES-$DATA/igsm_task/validation.parquet}
OUTPUT=${OUTPUT:-$CKPT/run_rl_qwen2.5_1.5b$OWN}
batch=32 responses=32 updates=1 # problems of a step, completions of each, updates of a step
max_prompt=1024 max_response=2560
lr=1e-6 weight_decay=0.01 kl_loss=true kl_type=k3
loss_mean=seq-mean-token-mean entropy=0.001
dynamic_sampling=false reward=binary val_temperature=1.0
epochs=null steps=200 save_freq=100 test_freq=5

source bash/verl.sh
