#!/usr/bin/env bash
# Per-step influence on an SFT model: how a step on one query would change the objective on all queries (examples/influence.py).
# Queries are like the problems of RL; results are grouped by the number of right completions.
# Reads sft-plain, igsm_task/queries.parquet and their rollouts. Writes influence/sft-plain. Tiny: half a minute.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/sft-plain/final}
PROBLEMS=${PROBLEMS:-$DATA/igsm_task/queries.parquet}
OUTPUT=${OUTPUT:-$RESULTS/influence/sft-plain$OWN}

run influence model="$MODEL_PATH" problems="$PROBLEMS" rollouts="$OUTPUT/rollouts" output="$OUTPUT" "$@"
