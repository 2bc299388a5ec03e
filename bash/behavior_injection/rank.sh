#!/usr/bin/env bash
# Does the influence of queries on the SFT models predict which arms gain from RL? Rank correlations over the arms, of the
# seeds 0 … SEEDS-1.
# Reads behavior_injection/results.parquet and influence/ of the seeds. Writes behavior_injection/ranks.json in seed 0's
# $RESULTS_DIR; with markdown=results/README.md the ranks' place there too. Seconds. With under three arms nothing.
export SECTION=behavior_injection
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

made=() # arms with both stages
for folder in "$CKPT_DIR"/sft-*/final; do
  arm=${folder#"$CKPT_DIR"/sft-} && arm=${arm%/final}
  if [[ -d $folder && -d $CKPT_DIR/rl-$arm/final ]]; then made+=("$arm"); fi
done
if ((${#made[@]} < 3)) && [[ -z ${DRY_RUN:-} ]]; then echo "under three arms with RL: no ranking" && exit; fi
ACCURACY=${ACCURACY:-$("$PYTHON" -m compositionality.study seeds "$SECTION/results.parquet")}
INFLUENCE=${INFLUENCE:-$("$PYTHON" -m compositionality.study seeds influence)}

run rank_arms accuracy="[$ACCURACY]" influence="[$INFLUENCE]" output="${OUTPUT:-$RESULTS_DIR/$SECTION/ranks.json}" "$@"
