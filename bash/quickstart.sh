#!/usr/bin/env bash
# Set-up, then sections 4.1 and 4.2 on two CPU cores with a model made from nothing: pretraining → Stage 1 (problems, rollouts,
# filter, SFT) → Stage 2 (RL on level 2, RL on level 1, SFT on gold solutions) → accuracy by level on trained and on held-out
# functions, table and figure; then pass@k (4.4), failure modes (4.5), the paper's claims, and all of it on one page.
# One seed: nine and a half to ten and a half minutes after one of set-up on two idle cores with AVX-512 (timed), eighteen after three
# on slower ones (calculated), over half of it pretraining; SEEDS=3: three times as long. ARMS="… rft" takes more arms, bash/study.sh
# adds all of the profile's. Prints a line for each step; the rest goes to a log.
# Reads nothing. Writes .venv, {data,checkpoints,results}/STUDY (composition; with a GPU composition-tiny). A second run re-uses
# what is there, and a run that was stopped continues.
# Usage: [SEEDS=3] bash bash/quickstart.sh [--cpu|--gpu] [--full] [--force] [STEP:key=value …]
# --full installs verl, Ray and vLLM too; PROFILE=tiny/verl bash bash/quickstart.sh takes them instead of the single-file trainers.
case " $* " in *" --help "* | *" -h "*) sed -En '2,/^[^#]/s/^#( |$)//p' "$0" && exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

setup=() words=() arms="rl-level2 rl-level1 gold-sft"
for word in "$@"; do
  case "$word" in
    --cpu | --gpu | --full) setup+=("$word") ;;
    --force | *=*) words+=("$word") ;;
    *) echo "error: quickstart.sh: unknown option $word; known: --cpu --gpu --full --force and STEP:key=value" >&2 && exit 2 ;;
  esac
done
if [[ ${PROFILE:-} == */verl ]]; then setup+=(--full) arms=${arms% *}; fi # whose SFT cannot take RL's number of tokens

BEGAN=$(date +%s)
export BEGAN PROFILE=${PROFILE:-tiny} ARMS=${ARMS:-$arms} PYTHON=.venv/bin/python
log=${RESULTS_DIR:-results}/quickstart.log
if [[ -z ${DRY_RUN:-} ]]; then
  bash bash/setup.sh "${setup[@]}"
  mkdir -p "$(dirname "$log")"
  echo "A line for each step; all that the steps say: $log"
fi
exec bash bash/study.sh "passk=[stage1,rl-level2]" log="$log" "${words[@]}"
