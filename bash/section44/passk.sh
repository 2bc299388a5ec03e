#!/usr/bin/env bash
# Section 4.4: pass@k by level for every k up to the profile's n_samples, of two or more models, with the paired
# differences to the first of them and the k at which curves cross. First a note: which differences these sizes can show,
# what they cost.
# Reads the models $PASSK_MODELS that are there (or $MODEL_PATH alone, called $MODEL_NAME, whose results are in
# section44-MODEL_NAME) and $PASSK_FILES.
# Writes $RESULTS_DIR/section44/results.parquet, problems/ and rollouts/ (of each model: all.parquet).
# Tiny: two minutes on 2 cores; models are sampled side by side where there are cores. Killed and started again it goes on.
# PLAN=1: the note alone.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

MODELS=${MODEL_PATH:+$(list "$MODEL_NAME:$MODEL_PATH")}
MODELS=${MODELS:-$("$PYTHON" -m compositionality.study models $PASSK_MODELS)}
[[ -n $MODELS ]] || fail "no model of $PASSK_MODELS in $CKPT_DIR; run: bash bash/$SECTION/run_all.sh"
PROBLEMS=${PROBLEMS:-$(files $PASSK_FILES)}
OUTPUT=${OUTPUT:-$RESULTS_DIR/section44$OF_MODEL}
words=(experiment=section44/passk models="[$MODELS]" problems="[$PROBLEMS]" output="$OUTPUT" engine="$ROLLOUT_ENGINE"
  ray_address="${RAY_ADDRESS:-}" seed="$SEED")
prior=() # an earlier evaluation says how hard the problems are
evaluated=$RESULTS_DIR/$SECTION
if [[ -f $evaluated/results.parquet ]]; then prior=(prior="$evaluated"); fi

run passk "${words[@]}" plan=true "${prior[@]}" "$@"
if [[ -n ${PLAN:-} ]]; then exit; fi
if [[ -z ${MODEL_PATH:-} ]]; then
  lanes=()
  for name in $PASSK_MODELS; do
    if [[ ,$MODELS =~ [,\']"$name": ]]; then lanes+=("section44/collect $name"); fi
  done
  "${bound[@]}" "$PYTHON" examples/run_study.py scripts="[$(IFS=,; echo "${lanes[*]}")]" -- "$@"
fi
run passk "${words[@]}" "$@"
