#!/usr/bin/env bash
# Does training work on this machine, how fast, in how much memory? Checks the set-up (driver, torch, bfloat16, NCCL), then both
# engines in small runs: pretraining, SFT, GRPO, rollouts with the built-in sampler and vLLM, reloading the exports.
# Reads $MODEL_PATH, a real model to check too (optional). Writes results/records/gpu-check-GPU/record.json (on a CPU gpu_check/
# record.json below the results) and the log of every step in gpu_check; prints a table.
# device=cpu: the same steps in the smallest sizes. engines=[single,verl,vllm]: only these engines. N_GPUS: how many GPUs.
source "$(dirname "$0")/env.sh"
MODEL_PATH=${MODEL_PATH:-}
OUTPUT=${OUTPUT:-$RESULTS/gpu_check}

run gpu_check work="$CKPT" logs="$OUTPUT" model="$MODEL_PATH" processes="${N_GPUS:-null}" "$@"
