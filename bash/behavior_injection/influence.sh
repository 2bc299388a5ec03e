#!/usr/bin/env bash
# Per-step influence of each SFT model: several completions of the queries, which are like the problems of RL, then what a
# step on each of them would change in the objective on all (examples/influence.py), by how many completions are right.
# Reads $CKPT_DIR/sft-*/final of the arms ($INFLUENCE_MODELS, default: those there are) and igsm_task/queries.parquet. Writes
# $RESULTS_DIR/influence/MODEL/{rollouts,influence.parquet,influence.json}. Tiny: a minute a model.
export SECTION=behavior_injection
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

OUTPUT=${OUTPUT:-$RESULTS_DIR/influence}
PROBLEMS=${PROBLEMS:-$DATA_DIR/igsm_task/queries.parquet}
if [[ -z ${INFLUENCE_MODELS:-} ]]; then
  for folder in "$CKPT_DIR"/sft-*/final; do if [[ -d $folder ]]; then INFLUENCE_MODELS+=" $(basename "${folder%/final}")"; fi; done
fi
if [[ -n ${DRY_RUN:-} ]]; then INFLUENCE_MODELS=${INFLUENCE_MODELS:-sft-vanilla}; fi
[[ -n ${INFLUENCE_MODELS:-} ]] || fail "no $CKPT_DIR/sft-*/final; run: bash bash/behavior_injection/run_seed.sh"

for name in $INFLUENCE_MODELS; do
  run collect_rollouts experiment="$SECTION/influence" model="$CKPT_DIR/$name/final" problems="$PROBLEMS" \
    output="$OUTPUT/$name/rollouts" engine="$ROLLOUT_ENGINE" ray_address="${RAY_ADDRESS:-}" seed="$SEED" n_samples=8 "$@"
  run influence experiment="$SECTION/influence" model="$CKPT_DIR/$name/final" problems="$PROBLEMS" \
    rollouts="$OUTPUT/$name/rollouts" output="$OUTPUT/$name" "$@"
done
