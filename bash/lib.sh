# What the scripts under bash/ share. Sourced, never run. Shell settings, profile, paths and three functions.
#
#   PROFILE    tiny (default without a GPU) | single | paper: the file bash/profiles/$PROFILE.sh
#   MODEL_PATH the model that a step starts from; each script says its default
#   DATA_DIR   problems and training data     (default data/$PROFILE)
#   CKPT_DIR   trained models                 (default checkpoints/$PROFILE)
#   RESULTS_DIR rollouts and tables           (default results/$PROFILE)
#   DRY_RUN=1  print the commands and compose the configurations, run nothing

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if nvidia-smi -L >/dev/null 2>&1; then DEVICE=${DEVICE:-gpu}; else DEVICE=${DEVICE:-cpu}; fi
if [[ $DEVICE == cpu ]]; then PROFILE=${PROFILE:-tiny}; else PROFILE=${PROFILE:-single}; fi
if [[ ! -f bash/profiles/$PROFILE.sh ]]; then
  echo "error: no profile $PROFILE; there are: $(basename -s .sh -a bash/profiles/*.sh | xargs)" >&2
  exit 2
fi
DATA_DIR=${DATA_DIR:-data/$PROFILE}
CKPT_DIR=${CKPT_DIR:-checkpoints/$PROFILE}
RESULTS_DIR=${RESULTS_DIR:-results/$PROFILE}
export DEVICE PROFILE DATA_DIR CKPT_DIR RESULTS_DIR
# shellcheck source=bash/profiles/tiny.sh
source "bash/profiles/$PROFILE.sh"

PYTHON_BIN=.venv/bin/python
if [[ ! -x $PYTHON_BIN ]]; then
  echo "error: no .venv; run: bash bash/setup.sh" >&2
  exit 2
fi
# Where .pyc files are switched off, every one of the ten processes of a verl run would compile torch and verl anew.
unset PYTHONDONTWRITEBYTECODE

# step NAME [key=value …]: print and run one entry point of examples/.
step() {
  printf '+ %s' "$PYTHON_BIN examples/$1.py" && printf ' %q' "${@:2}" && echo
  if [[ -n ${DRY_RUN:-} && $1 != train_* ]]; then return; fi
  "$PYTHON_BIN" "examples/$1.py" "${@:2}" ${DRY_RUN:+lab.dry_run=true}
}

# script PATH [options]: run another script of bash/ with the same settings.
script() {
  echo
  echo "== $1"
  bash "bash/$1.sh" "${@:2}"
}
