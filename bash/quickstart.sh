#!/usr/bin/env bash
# The whole study of sections 4.1 and 4.2 with one seed, on two CPU cores, with a small model trained from scratch:
#   set-up       the packages, in .venv
#   base         pretraining: over half of the time
#   Stage 1      the model learns single functions: problems, rollouts, filter, SFT
#   Stage 2      RL on level 2, RL on level 1, SFT on reference (gold) solutions
#   evaluation   accuracy by level on trained and on held-out functions, pass@k (4.4), failure modes (4.5), the paper's claims
#   page         all results: results/composition/report/index.html (on a machine with a GPU results/composition-tiny/…)
# Time on two idle cores with AVX-512: one to two minutes of set-up and 11 to 14 more (timed); slower ones: three and 18 (calculated).
# Prints a line when a step is done; the output of the steps goes to results/quickstart.log. Run again, it skips finished steps
# and continues a stopped one.
# Reads nothing. Writes .venv and {data,checkpoints,results}/composition.
# Usage: bash bash/quickstart.sh [--cpu|--gpu] [--full] [--force] [STEP:key=value …]
#   SEEDS=3 bash bash/quickstart.sh             three seeds: three times as long, with intervals over them
#   ARMS="rl-level2 rft" bash bash/quickstart.sh   these arms; bash/study.sh trains all arms of the profile
#   PROFILE=tiny/verl bash bash/quickstart.sh   with verl, Ray and vLLM (installed by --full) in place of the single-file trainers
case " $* " in *" --help "* | *" -h "*) sed -En '2,/^[^#]/s/^#( |$)//p' "$0" && exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "error: $*" >&2 && exit 2; }
setup=() words=() arms="rl-level2 rl-level1 gold-sft"
for word in "$@"; do
  case "$word" in
    --cpu | --gpu | --full) setup+=("$word") ;;
    --force | *=*) words+=("$word") ;;
    *) fail "quickstart.sh: unknown option $word; known: --cpu --gpu --full --force and STEP:key=value" ;;
  esac
done
if [[ ${PROFILE:-} == */verl ]]; then setup+=(--full) arms=${arms% *}; fi # verl's SFT cannot stop after RL's number of tokens

# what would stop the study after minutes of set-up
[[ ${SEEDS:-1} =~ ^([1-9][0-9]{0,2}|1000)$ ]] || fail "SEEDS=$SEEDS: give a whole number from 1 to 1000"
names=(compositionality/config/profile/*.yaml) names=("${names[@]##*/}") names=("${names[@]%.yaml}")
[[ ${PROFILE:-tiny} =~ ^([^/ ]+)(/(single|verl))?$ && " ${names[*]} " == *" ${BASH_REMATCH[1]} "* ]] ||
  fail "PROFILE=$PROFILE: no such profile; there are: ${names[*]}, each also as NAME/single or NAME/verl"

BEGAN=$(date +%s)
export BEGAN PROFILE=${PROFILE:-tiny} ARMS=${ARMS:-$arms} PYTHON=.venv/bin/python
log=${RESULTS_DIR:-results}/quickstart.log
if [[ -z ${DRY_RUN:-} ]]; then
  bash bash/setup.sh "${setup[@]}"
  mkdir -p "$(dirname "$log")"
  echo "Prints a line when a step is done; the first, pretraining, takes over half of the time. Output of the steps: $log"
fi
exec bash bash/study.sh "passk=[stage1,rl-level2]" log="$log" "${words[@]}"
