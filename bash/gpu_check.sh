#!/usr/bin/env bash
# Does training work on this machine, how fast, in how much memory? Set-up (driver, torch, bfloat16, NCCL), then both engines
# in small runs: pretraining, SFT, GRPO, rollouts with the built-in sampler and vLLM, the exports loaded again.
# Reads $MODEL_PATH, a real model to check too (optional). Writes results/records/gpu-check-GPU.json (on a CPU
# $RESULTS_DIR/gpu_check/record.json) and the log of every step in $RESULTS_DIR/gpu_check; prints a table.
# DEVICE=cpu: the same steps in the smallest sizes. ENGINES="single verl vllm": whose steps.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

words=(work="$CKPT_DIR" logs="$RESULTS_DIR/gpu_check" model="${MODEL_PATH:-}" device="$DEVICE")
words+=(engines="[$(list ${ENGINES:-single verl vllm})]" processes="${N_GPUS:-null}")
run gpu_check "${words[@]}" "$@"
