#!/usr/bin/env bash
# Rollouts for influence.sh: several completions of each query (or of each problem of DATA) by an SFT model.
# Reads sft-plain and igsm_task/queries.parquet. Writes influence/sft-plain/rollouts. Tiny: half a minute.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/sft-plain/final}
PROBLEMS=${PROBLEMS:-$DATA/igsm_task/queries.parquet}
OUTPUT=${OUTPUT:-$RESULTS/influence/sft-plain$OWN/rollouts}

run collect_rollouts model="$MODEL_PATH" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" n_samples="${N_SAMPLES:-8}" "$@"
