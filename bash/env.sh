# shellcheck shell=bash disable=SC2034 # its variables are for the scripts that source it
# Sourced by every script of bash/. Sets the folders DATA, CKPT, RESULTS of this run and defines run. README.md explains the variables.
#   PROFILE  a file of compositionality/config/profile/: sizes, model, engine (tiny/verl: verl). Default: tiny; single on a GPU
#   STUDY    name of the folders. Default: composition, countdown, injection or scaling, by the script; -PROFILE if not the default one
#   SEED SPLIT TEST_SEED   seed of problems and training (0); held-out functions (0: the paper's); seed of test problems (2027)
#   DATA_DIR CKPT_DIR RESULTS_DIR   roots (data, checkpoints, results) of ROOT/STUDY/seedN[-splitM]
#   MODEL_PATH TRAIN_FILES VAL_FILES OUTPUT replace a script's own; so do N_SAMPLES and DATA (its problems) if it samples
#            (with your own model the default OUTPUT ends in its name: stage2-rl-level2-NAME)
#   PYTHON; DRY_RUN=1: print the command and check it as at its start, except for inputs that do not exist yet
case " $* " in *" --help "* | *" -h "*)
  sed -En '2,/^[^#]/s/^#( |$)//p' "$0"
  grep -q "^# Usage" "$0" || echo "Usage: [NAME=value …] bash $0 [key=value …]   names: bash/README.md; keys: --help of its Python program"
  exit ;;
esac
set -euo pipefail
behind=()
while [[ ${1:-} =~ ^[A-Z_]+= ]]; do export "${1?}" && behind+=("${1%%=*}") && shift; done # NAME=value works after the script name too
step=$(realpath "$0")
cd -P "$(dirname "${BASH_SOURCE[0]}")/.." # physical path, as realpath gives it, also through a link
step=${step#"$PWD/bash/"} step=${step%.sh}
fail() { echo "error: $*" >&2 && exit 2; }
PROBLEMS=${DATA:-}
[[ -z $PROBLEMS ]] || grep -q PROBLEMS "bash/$step.sh" || fail "DATA=$DATA: this script does not sample; give TRAIN_FILES"
if [[ -z ${PYTHON:-} && ! -x .venv/bin/python ]] && python -P -c "import compositionality" 2>/dev/null; then
  PYTHON=$(command -v python) && echo "no .venv here; using $PYTHON" >&2
fi
export PYTHON=${PYTHON:-.venv/bin/python}
[[ -n $(command -v "$PYTHON") ]] || fail "no $PYTHON; run: bash bash/setup.sh"
if [[ -z ${VARIABLES_SEEN:-} ]]; then "$PYTHON" -I -S compositionality/study/variables.py "$step" "${behind[@]}" || exit; fi
export VARIABLES_SEEN=1 # scripts that this one starts do not warn again
default=tiny
case ${CUDA_VISIBLE_DEVICES-all} in "" | -1) ;; *) if nvidia-smi -L &>/dev/null; then default=single; fi ;; esac
for name in SEED SPLIT TEST_SEED; do # before any arithmetic
  [[ ${!name:-0} =~ ^(0|[1-9][0-9]{0,8})$ ]] || fail "$name=${!name}: give a whole number from 0 to 999999999 without leading zeros"
done
[[ ${STUDY:-x} =~ ^[[:alnum:]][[:alnum:]._-]*(/[[:alnum:]._-]+)?$ ]] || fail "STUDY=$STUDY: give letters, digits, dots, dashes, underscores"
export PROFILE=${PROFILE:-$default} SEED=${SEED:-0} SPLIT=${SPLIT:-0} TEST_SEED=${TEST_SEED:-2027}
if [[ $default == tiny && $PROFILE != */verl ]]; then export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}; fi # small matrices
case $step in section43/*) name=countdown ;; behavior*) name=injection ;; scaling*) name=scaling ;; *) name=composition ;; esac
if [[ $PROFILE != "$default" ]]; then name+=-${PROFILE//\//-}; fi
place=${STUDY:-$name}/seed$SEED$([[ $SPLIT == 0 ]] || echo "-split$SPLIT")
if [[ $step == */* ]]; then export STUDY=${place%%/seed*}; fi # the scripts in bash/ itself serve every study
DATA=${DATA_DIR:-data}/$place CKPT=${CKPT_DIR:-checkpoints}/$place RESULTS=${RESULTS_DIR:-results}/$place
OWN=${MODEL_PATH:-} OWN=${OWN%]} OWN=${OWN%/} OWN=${OWN%/final} OWN=${OWN%/best}
OWN=${OWN:+-${OWN##*[/:]}} # name of a given model, appended to OUTPUT: the study's own results are not overwritten
export WANDB_RUN_GROUP=${WANDB_RUN_GROUP:-${STUDY:-}}
# run NAME key=value …: print and run examples/NAME.py with this profile and its settings of this script; dies with the script.
run() {
  local files=${TRAIN_FILES:-}
  if [[ -n $files && ($files == \[* || $files != */*) && ${VAL_FILES:-} == "${files%/*}"/* ]]; then
    fail "TRAIN_FILES=$files: which file to validate on is not clear; give VAL_FILES too (VAL_FILES= for none)"
  fi
  local words=("examples/$1.py" "profile=$PROFILE" "step=$step" "${@:2}" ${DRY_RUN:+--dry-run})
  printf '+ %s%s\n' "$PYTHON" "$(printf ' %q' "${words[@]}")" >&2
  $([[ -z $(command -v setpriv) ]] || echo setpriv --pdeathsig KILL) "$PYTHON" "${words[@]}"
}
