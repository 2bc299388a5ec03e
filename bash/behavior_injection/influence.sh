#!/usr/bin/env bash
# Per-step influence of an SFT model: what a step on each query, which are like the problems of RL, would change in the objective
# on all (examples/influence.py), by how many completions are right.
# Reads sft-plain, igsm_task/queries.parquet and their rollouts. Writes influence/sft-plain. Tiny: half a minute.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/sft-plain/final}
PROBLEMS=${PROBLEMS:-$DATA/igsm_task/queries.parquet}
OUTPUT=${OUTPUT:-$RESULTS/influence/sft-plain$OWN}

run influence model="$MODEL_PATH" problems="$PROBLEMS" rollouts="$OUTPUT/rollouts" output="$OUTPUT" "$@"
