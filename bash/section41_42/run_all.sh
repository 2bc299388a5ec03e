#!/usr/bin/env bash
# Sections 4.1 and 4.2 from nothing to the table and the figure, for SEEDS seeds (default 1): run_seed.sh for each, then
# their summary. Each step that is there already is skipped; stopped at any moment, it continues when run again.
# Reads $MODEL_PATH (default: the profile's base model; some profiles make their own). Writes $DATA_DIR, $CKPT_DIR,
# $RESULTS_DIR, and for the seeds after the first the same names with -seed1, -seed2 …
# Tiny: about 11 minutes a seed on 2 cores. Paper: days on a node of 8 GPUs.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

((SEEDS == 1 || SEED == 0)) || fail "SEED=$SEED SEEDS=$SEEDS: give one of the two; SEEDS=N runs seeds 0 to N-1"
if [[ -z ${DRY_RUN:-} ]]; then
  mkdir -p "$RESULTS_DIR/section41_42"
  export TIMES=$RESULTS_DIR/section41_42/times.tsv # start of the command, seed, depth, stage, its seconds
fi
for ((seed = SEED; seed < SEED + SEEDS; seed++)); do
  suffix=""
  if ((seed != SEED)); then suffix=-seed$seed; fi
  SEED=$seed DATA_DIR=$DATA_DIR$suffix CKPT_DIR=$CKPT_DIR$suffix RESULTS_DIR=$RESULTS_DIR$suffix \
    script section41_42/run_seed "$@"
done
script section41_42/summarise $(force_in "$@")
