#!/usr/bin/env bash
# Section 4.4: pass@k by level for every k up to $PASSK_SAMPLES, of two or more models, with the paired differences to the
# first of them and the k at which curves cross. First a note: which differences these sizes can show, what they cost.
# Reads the models $PASSK_MODELS that are there (or $MODEL_PATH alone, called $MODEL_NAME) and $PASSK_FILES.
# Writes $RESULTS_DIR/section44/passk.{json,parquet}, by_problem.parquet, problems/ and rollouts/. Tiny: two minutes on
# 2 cores; the models are asked side by side where there are cores. Killed and started again it goes on.
# PLAN=1: the note alone.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

models=$(models_there "${PASSK_MODELS[@]}")
[[ -n $models ]] || fail "no model of ${PASSK_MODELS[*]} in $CKPT_DIR; run: bash bash/section41_42/run_all.sh"
passk "$models" plan=true $(prior_of section41_42) "$@"
if [[ -n ${PLAN:-} ]]; then exit; fi
if [[ -z ${MODEL_PATH:-} ]]; then
  names=()
  for entry in ${models//,/ }; do names+=("${entry%%:*}"); done
  in_lanes section44/collect "${names[*]}" "$@"
fi
passk "$models" "$@"
