#!/usr/bin/env bash
# Makes .venv with exactly the locked packages: what the embedded default uses (torch, transformers, pandas, matplotlib …;
# under a minute, 1.7 GB for cpu). --full adds verl, Ray, vLLM and wandb, which ENGINE=verl needs (another two minutes, 3 GB in
# all for cpu, 12 GB for gpu); --dev adds what the tests need on top of that, and Debian's chromium where it may (root and
# apt-get), for the tests of the report's page. Nothing is done that is done already.
# Reads requirements-*.lock; writes .venv. Usage: bash bash/setup.sh [--cpu|--gpu] [--full] [--dev]
# Without --cpu or --gpu it takes what the machine has. PYTHON chooses the interpreter (3.11 or 3.12).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "error: $*" >&2; exit 2; }

device=""
sets=(small)
for word in "$@"; do
  case "$word" in
    --cpu | --gpu) device=${word#--} ;;
    --full) if [[ ${#sets[@]} == 1 ]]; then sets=(small full); fi ;;
    --dev) sets=(small full dev) ;;
    *) fail "setup.sh: unknown option $word; known: --cpu --gpu --full --dev" ;;
  esac
done
if [[ -z $device ]]; then
  if nvidia-smi -L >/dev/null 2>&1; then device=gpu; else device=cpu; fi
fi
declare -A lock_of=([small]=requirements-$device-small.lock [full]=requirements-$device.lock [dev]=requirements-dev.lock)

find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3.11 python3.12 python3; do
    [[ -n $candidate ]] || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  fail "no Python 3.11 or 3.12 found; install one or set PYTHON=/path/to/python"
}

# torch's CPU wheel is not on PyPI. Some machines have it at hand; elsewhere it comes from PyTorch's own CPU index.
install_torch_cpu() {
  local pin
  pin=$(grep '^torch==' "${lock_of[small]}")
  .venv/bin/pip install --quiet --no-deps "$pin" 2>/dev/null ||
    .venv/bin/pip install --quiet --no-deps "$pin" --index-url "${TORCH_INDEX_URL:-https://download.pytorch.org/whl/cpu}" ||
    fail "no CPU wheel of $pin found; set TORCH_INDEX_URL to an index that has it"
}

# install SET: the packages of its lock, unless they are there.
install() {
  local lock=${lock_of[$1]} stamp stamp_file=.venv/.installed-$device-$1
  stamp=$(cat "$lock" pyproject.toml bash/setup.sh | sha256sum | cut -c1-16)
  if [[ -f $stamp_file && $(<"$stamp_file") == "$stamp" ]]; then return; fi
  echo "set-up: installing the $(wc -l <"$lock") packages of $lock into .venv"
  if [[ $device == cpu && $1 == small ]]; then install_torch_cpu; fi
  .venv/bin/pip install --quiet --no-deps -r "$lock" || fail "the packages of $lock could not be installed; see above"
  if [[ $1 == small ]]; then
    .venv/bin/pip install --quiet --no-deps --no-build-isolation -e . || fail "the project itself could not be installed; see above"
  fi
  echo "$stamp" >"$stamp_file"
}

# A browser for the tests of the report. Without one they are skipped, so what fails here is only told.
install_browser() {
  if command -v chromium chromium-browser google-chrome >/dev/null; then return; fi
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "set-up: no chromium, and no right to install it: the tests of the report's page will be skipped" >&2
    return
  fi
  echo "set-up: installing chromium, for the tests of the report's page"
  if ! { apt-get update -q && apt-get install -qy --no-install-recommends chromium; } >.venv/.chromium.log 2>&1; then
    echo "set-up: chromium could not be installed (.venv/.chromium.log): the tests of the report's page will be skipped" >&2
  fi
}

mkdir -p .venv
exec 9>.venv/.setup.lock
flock 9 # two scripts started together must not install into each other

if [[ ! -x .venv/bin/pip ]]; then
  python=$(find_python)
  "$python" -m venv .venv || fail "$python cannot make a virtual environment; on Debian: apt-get install python3-venv"
fi
for name in "${sets[@]}"; do install "$name"; done
if [[ ${sets[*]} == *dev* ]]; then install_browser; fi
echo "set-up: .venv is ready ($device, ${sets[*]}, $(.venv/bin/python --version))"
