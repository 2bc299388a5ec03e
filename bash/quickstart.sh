#!/usr/bin/env bash
# The whole study of sections 4.1 and 4.2 with one seed, on two CPU cores, with a small model made from nothing:
#   set-up       the packages, in .venv
#   base         pretraining: over half of the time
#   Stage 1      the model learns single functions: problems, rollouts, filter, SFT
#   Stage 2      RL on level 2, RL on level 1, SFT on reference (gold) solutions
#   evaluation   accuracy by level on trained and on held-out functions, pass@k (4.4), failure modes (4.5), the paper's claims
#   page         all of it: results/composition/report/index.html (on a machine with a GPU results/composition-tiny/…)
# Takes about 10 minutes after one of set-up on two idle cores with AVX-512 (timed), 18 after three on slower ones (calculated).
# Prints a line when a step is done; what the steps print is in results/quickstart.log. Run again, it skips what is done, and
# continues a run that was stopped.
# Reads nothing. Writes .venv and {data,checkpoints,results}/composition.
# Usage: bash bash/quickstart.sh [--cpu|--gpu] [--full] [--force] [STEP:key=value …]
#   SEEDS=3 bash bash/quickstart.sh             three seeds: three times as long, with intervals over them
#   ARMS="rl-level2 rft" bash bash/quickstart.sh   these arms; bash/study.sh trains all of the profile's
#   PROFILE=tiny/verl bash bash/quickstart.sh   with verl, Ray and vLLM, which --full installs, in place of the single-file trainers
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
  echo "A line when a step is done; the first, pretraining, takes over half of the time. What the steps print: $log"
fi
exec bash bash/study.sh "passk=[stage1,rl-level2]" log="$log" "${words[@]}"
