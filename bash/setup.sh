#!/usr/bin/env bash
# Creates .venv with the locked packages; does nothing where they are installed already.
#   bash bash/setup.sh           what the single-file trainers need (torch, transformers, pandas …): 1 minute, 1.7 GB on a CPU
#   bash bash/setup.sh --full    also verl, Ray, vLLM and wandb, for ENGINE=verl: 2 minutes more, 3 GB in all (12 GB on a GPU)
#   bash bash/setup.sh --dev     also what the tests need; as root on Debian also chromium, for the tests of the HTML page
# --cpu or --gpu chooses the lock files; without either, a GPU is used if nvidia-smi finds one.
# Reads requirements-*.lock. Writes .venv. PYTHON=/path/to/python chooses the interpreter (3.11 or 3.12).
source "$(dirname "${BASH_SOURCE[0]}")/help.sh"
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "error: $*" >&2; exit 2; }

device="" full="" dev=""
for word in "$@"; do
  case "$word" in
    --cpu | --gpu) device=${word#--} ;;
    --full) full=full ;;
    --dev) dev=dev ;;
    *) fail "setup.sh: unknown option $word; known: --cpu --gpu --full --dev" ;;
  esac
done
if [[ -z $device ]]; then
  if nvidia-smi -L >/dev/null 2>&1; then device=gpu; else device=cpu; fi
fi
read -ra sets <<<"small $full $dev"
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

# The CPU wheel of torch is not on PyPI: pip's configured index may have it, PyTorch's own index has.
install_torch_cpu() {
  local pin
  pin=$(grep '^torch==' "${lock_of[small]}")
  .venv/bin/pip install --quiet --no-deps "$pin" 2>/dev/null ||
    .venv/bin/pip install --quiet --no-deps "$pin" --index-url "${TORCH_INDEX_URL:-https://download.pytorch.org/whl/cpu}" ||
    fail "no CPU wheel of $pin found; set TORCH_INDEX_URL to an index that has it"
}

# install SET: installs the packages of its lock file, unless the stamp says that this was done.
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

# Installs a browser for the tests of the HTML page. They are skipped without one, so a failure is a warning.
install_browser() {
  if command -v chromium chromium-browser google-chrome >/dev/null; then return; fi
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "set-up: no chromium, and it can only be installed by root with apt-get; the tests of the HTML page will be skipped" >&2
    return
  fi
  echo "set-up: installing chromium, for the tests of the HTML page"
  if ! { apt-get update -q && apt-get install -qy --no-install-recommends chromium; } >.venv/.chromium.log 2>&1; then
    echo "set-up: chromium could not be installed (see .venv/.chromium.log); the tests of the HTML page will be skipped" >&2
  fi
}

mkdir -p .venv
exec 9>.venv/.setup.lock
flock 9 # two scripts started together would install into the same folder

if [[ ! -x .venv/bin/pip ]]; then
  python=$(find_python)
  "$python" -m venv .venv || fail "$python cannot create a virtual environment; on Debian: apt-get install python3-venv"
fi
for name in "${sets[@]}"; do install "$name"; done
if [[ -n $dev ]]; then install_browser; fi
echo "set-up: .venv is ready ($device, ${sets[*]}, $(.venv/bin/python --version))"
