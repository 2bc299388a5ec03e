#!/usr/bin/env bash
# What the effect depends on: the pretraining text (its tokens, compositions, calls, number of other functions), the size of the
# model. Three runs a variant (SEEDS), seeds SEED … of models and training, all on the problems of the first: validation problems,
# 500 a level. ablation_variant.sh says what each variant changes.
# Reads nothing. Writes data, checkpoints and results under …/ablation (-seed1/ablation …), and $RESULTS_DIR/ablation/ablation.json.
# Tiny: hours on 2 cores. VARIANTS="recipe wide": only these.
# Usage: [SEEDS=1] bash bash/section41_42/ablation.sh [--force] [markdown=results/README.md]  (the table into its place there)
export SEEDS=${SEEDS:-3}
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

VARIANTS=${VARIANTS:-recipe no-composition more-composition visible-chains one-call more-tokens few-functions many-functions narrow wide}
lanes=()
for name in $VARIANTS; do lanes+=("section41_42/ablation_variant $name"); done
export PROBLEM_SEED=$SEED
"${bound[@]}" "$PYTHON" examples/run_study.py scripts="[$(IFS=,; echo "${lanes[*]}")]" seeds="$SEEDS" -- "$@"

bases=() words=()
for name in $VARIANTS; do
  bases+=("$name:$CKPT_DIR/ablation/$name/base")
  words+=("$name" "$RESULTS_DIR" "ablation/$name/section41_42-validation/results.parquet")
done
inputs=$("$PYTHON" -m compositionality.study results "${words[@]}")
run summarise_ablation bases="[$(list "${bases[@]}")]" inputs="[$inputs]" output="$RESULTS_DIR/ablation/ablation.json" "$@"
