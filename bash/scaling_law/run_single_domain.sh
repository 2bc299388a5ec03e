#!/usr/bin/env bash
# run_multi_domain.sh on the rows of one domain only; validated and tested on all four, so that the table shows the
# transfer to the others.
# Reads and writes what run_multi_domain.sh does; $OUTPUT is rl-DOMAIN.
# Usage: MODEL_PATH=Qwen/Qwen2.5-7B DATA=guru/train N_GPUS=8 bash bash/scaling_law/run_single_domain.sh math|code|logic|stem
#   [key=value …]
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

domain=${1:-}
[[ -n $domain && $domain != -* && $domain != *=* ]] || fail "which domain? math, code, logic or stem"

# ---- to adjust: the published settings that differ from run_multi_domain.sh
batch=64 responses=2 updates=2
epochs=2 save_every=25
if [[ -z ${TRAIN_FILES:-}$PROBLEMS ]]; then batch=8; fi # the sample
# ----

OUTPUT=${OUTPUT:-$CKPT/rl-$domain$OWN} DATA=$PROBLEMS bash bash/scaling_law/run_multi_domain.sh "rows:train_domains=[$domain]" \
  data.prompts_per_step="$batch" rollout.n="$responses" algorithm.updates_per_step="$updates" trainer.epochs="$epochs" \
  trainer.save_every="$save_every" "${@:2}"
