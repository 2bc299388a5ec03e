#!/usr/bin/env bash
# Set-up, then sections 4.1 and 4.2 on two CPU cores with a model made from nothing: pretraining → Stage 1 (problems,
# rollouts, filter, SFT) → Stage 2 (RL on level 1, RL on level 2) → accuracy by level on trained and on held-out functions,
# table and figure; then pass@k (4.4), failure modes (4.5), the paper's claims, and all of it on one page.
# One seed, 12 minutes on two idle cores; SEEDS=3 takes three times as long. ARMS="… rft rft-matched" takes more arms,
# PASSK_MODELS="… rl-level1" more models for pass@k, and bash/study.sh adds all of the profile's to what is there.
# Reads nothing. Writes .venv, data/tiny, checkpoints/tiny, results/tiny (more seeds: tiny-seed1 …). A second run re-uses
# what is there, and a run that was stopped continues.
# Usage: [SEEDS=3] bash bash/quickstart.sh [--cpu|--gpu] [--full] [--force] [key=value …]
# --full installs verl, Ray and vLLM too; ENGINE=verl bash bash/quickstart.sh takes them instead of the single-file trainers.
source "$(dirname "${BASH_SOURCE[0]}")/help.sh"
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

setup=() words=()
for word in "$@"; do
  case "$word" in
    --cpu | --gpu | --full) setup+=("$word") ;;
    --force | *=*) words+=("$word") ;;
    *)
      echo "error: quickstart.sh: unknown option $word; known: --cpu --gpu --full --force and key=value of the steps" >&2
      exit 2
      ;;
  esac
done
if [[ ${ENGINE:-} == verl ]]; then setup+=(--full); fi

began=$(date +%s)
if [[ -z ${DRY_RUN:-} ]]; then bash bash/setup.sh "${setup[@]}"; fi
ready=$(date +%s)
export PROFILE=${PROFILE:-tiny} ARMS=${ARMS:-rl-level2 rl-level1} PASSK_MODELS=${PASSK_MODELS:-stage1 rl-level2}
export BEGAN=$began PYTHON=.venv/bin/python # the stages' times start with this command
source bash/env.sh
"${bound[@]}" bash bash/study.sh "${words[@]}"
if [[ -n ${DRY_RUN:-} ]]; then exit; fi

seeds=""
if ((SEEDS > 1)); then seeds=" (and ${RESULTS_DIR##*/}-seed1 … in its place)"; fi
cat <<END

Seconds of each stage (set-up: $((ready - began))):
$(awk -F '\t' -v began="$BEGAN" '$1 == began && $3 <= 3 && $4 !~ /run_(seed|all)$/ { printf "  seed %s  %5d  %s\n", $2, $5, $4 }' "$RESULTS_DIR/section41_42/times.tsv")
(arms run $LANES at a time)

Every completion: $RESULTS_DIR/{section41_42,section44}/rollouts$seeds
Tables:       $RESULTS_DIR/report/tables (CSV); decisions on the claims: $RESULTS_DIR/claims.json
Figures:      $RESULTS_DIR/report/figures (PNG)
Models:       $CKPT_DIR/{base,stage1-rft,stage2-*}
Problems:     $DATA_DIR/string_task
Time:         set-up $((ready - began)) s, everything after it $(($(date +%s) - ready)) s

The page, for any browser: $RESULTS_DIR/report/index.html
END
