#!/usr/bin/env bash
# The same with Llama-3.1-8B on a node of eight GPUs of 80 GB.
# Usage: MODEL_PATH=STAGE1_MODEL bash run_grpo_8gpus.sh [key=value of verl …]
export N_GPUS=${N_GPUS:-8} TENSOR_PARALLEL=${TENSOR_PARALLEL:-2} BATCH=${BATCH:-128} LR=${LR:-1e-6}
exec bash "$(dirname "${BASH_SOURCE[0]}")/run_grpo_1gpu.sh" "$@"
