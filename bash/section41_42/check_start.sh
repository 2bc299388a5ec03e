#!/usr/bin/env bash
# Is the base a start for RL? Right chains of two and three functions, trained and held-out, on validation problems: one answer to
# each, and the exact probability of the gold solution. No part of run_all; after its only=[base,problems]. The claims "start" read it.
# PROFILE=paper has no validation problems but those of its test, as the paper.
# Reads a model folder (default: base) and the validation files. Writes start/{results.parquet,training.json}. Tiny: 20 seconds.
source "$(dirname "$0")/../env.sh"
MODEL_PATH=${MODEL_PATH:-$CKPT/base}
PROBLEMS=${PROBLEMS:-$DATA/@validation}
OUTPUT=${OUTPUT:-$RESULTS/start$OWN}

run evaluate models="[base:$MODEL_PATH]" problems="$PROBLEMS" output="$OUTPUT" seed="$SEED" levels=[2,3] gold_log_probs=true "$@"
