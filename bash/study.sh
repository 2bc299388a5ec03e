#!/usr/bin/env bash
# A whole study for SEEDS seeds (default 1), from nothing to the page: sections 4.1 and 4.2 (training, accuracy by level),
# then for every seed section 4.4 (pass@k) and section 4.5 (failure modes), the paper's claims held against all of it, the
# report. Section 4.3 is a study of its own (bash/section43/run_all.sh): run before, it is on the page too.
# Each step that is there already is skipped; stopped at any moment, it continues when run again.
# Reads $MODEL_PATH (default: the profile's base model; some profiles make their own). Writes $DATA_DIR, $CKPT_DIR,
# $RESULTS_DIR, and for the seeds after the first the same names with -seed1, -seed2 …
given=${MODEL_PATH:-${BASE_MODEL:-}} # the scripts after training take $MODEL_PATH for the only model to ask
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

after_training() {
  SEED=$seed SEEDS=1 DATA_DIR=$DATA_DIR$suffix CKPT_DIR=$CKPT_DIR$suffix RESULTS_DIR=$RESULTS_DIR$suffix \
    MODEL_PATH="" BASE_MODEL=$given script "$@"
}

script section41_42/run_all "$@"
if [[ -z ${DRY_RUN:-} ]]; then export TIMES=$RESULTS_DIR/section41_42/times.tsv; fi
each_seed after_training section44/passk $(force_in "$@")
each_seed after_training section45/failure_modes $(force_in "$@")
script claims $(force_in "$@")
TIMES="" script report $(force_in "$@") # the page holds the times: another line would make it stale
