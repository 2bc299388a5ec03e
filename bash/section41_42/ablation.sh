#!/usr/bin/env bash
# What the effect depends on: the pretraining text (its tokens, compositions, calls, number of other functions), the size of the
# model. One seed, validation problems (500 a level); ablation_variant.sh says what each variant changes.
# Reads nothing. Writes data, checkpoints and results under …/ablation, and $RESULTS_DIR/ablation/ablation.json.
# Tiny: an hour on 2 cores. VARIANTS="recipe wide": only these.
# Usage: bash bash/section41_42/ablation.sh [--force] [markdown=results/README.md]  (the table into its place there)
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

VARIANTS=${VARIANTS:-recipe no-composition more-composition visible-chains one-call more-tokens few-functions many-functions narrow wide}
lanes=()
for name in $VARIANTS; do lanes+=("section41_42/ablation_variant $name"); done
"${bound[@]}" "$PYTHON" examples/run_study.py scripts="[$(IFS=,; echo "${lanes[*]}")]" -- "$@"

bases=() inputs=()
for name in $VARIANTS; do
  bases+=("$name:$CKPT_DIR/ablation/$name/base")
  inputs+=("$name:$RESULTS_DIR/ablation/$name/section41_42-validation/accuracy.json")
done
run summarise_ablation bases="[$(list "${bases[@]}")]" inputs="[$(list "${inputs[@]}")]" \
  output="$RESULTS_DIR/ablation/ablation.json" "$@"
