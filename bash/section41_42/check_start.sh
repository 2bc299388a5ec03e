#!/usr/bin/env bash
# Is the base a good start for RL? Measures right chains of two and three functions, trained and held-out, on validation problems:
# one answer to each, and the exact probability of the gold solution. Not part of run_all: run it after run_all.sh only=[base,problems].
# The claims "start" read its result. PROFILE=paper, like the paper, validates on its test problems.
# Reads a model folder (default: base) and the validation files. Writes start/{results.parquet,training.json}. Tiny: 20 seconds.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/base}
PROBLEMS=${PROBLEMS:-$DATA/@validation}
OUTPUT=${OUTPUT:-$RESULTS/start$OWN}

run evaluate models="[base:$MODEL_PATH]" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" levels=[2,3] gold_log_probs=true "$@"
