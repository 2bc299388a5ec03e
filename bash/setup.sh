#!/usr/bin/env bash
# Makes .venv with exactly the locked packages. Reads requirements-*.lock; writes .venv; two to four minutes the first
# time, nothing afterwards. Usage: bash bash/setup.sh [--cpu|--gpu] [--dev]
# Without --cpu or --gpu it takes what the machine has. PYTHON chooses the interpreter (3.11 or 3.12).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "error: $*" >&2; exit 2; }

device=""
locks=()
for word in "$@"; do
  case "$word" in
    --cpu | --gpu) device=${word#--} ;;
    --dev) locks+=(requirements-dev.lock) ;;
    *) fail "setup.sh: unknown option $word; known: --cpu --gpu --dev" ;;
  esac
done
if [[ -z $device ]]; then
  if nvidia-smi -L >/dev/null 2>&1; then device=gpu; else device=cpu; fi
fi
locks=("requirements-$device.lock" "${locks[@]}")

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
  pin=$(grep '^torch==' requirements-cpu.lock)
  .venv/bin/pip install --quiet --no-deps "$pin" 2>/dev/null ||
    .venv/bin/pip install --quiet --no-deps "$pin" --index-url "${TORCH_INDEX_URL:-https://download.pytorch.org/whl/cpu}" ||
    fail "no CPU wheel of $pin found; set TORCH_INDEX_URL to an index that has it"
}

mkdir -p .venv
exec 9>.venv/.setup.lock
flock 9 # two scripts started together must not install into each other

stamp=$(cat "${locks[@]}" pyproject.toml bash/setup.sh | sha256sum | cut -c1-16)
stamp_file=.venv/.installed-$device${locks[1]:+-dev}
if [[ -f $stamp_file && $(<"$stamp_file") == "$stamp" ]]; then
  echo "set-up: .venv is up to date ($device)"
  exit 0
fi

echo "set-up: installing $(cat "${locks[@]}" | wc -l) pinned packages for $device into .venv (a few minutes, about 3 GB for cpu, 12 GB for gpu)"
if [[ ! -x .venv/bin/pip ]]; then
  python=$(find_python)
  "$python" -m venv .venv || fail "$python cannot make a virtual environment; on Debian: apt-get install python3-venv"
fi
if [[ $device == cpu ]]; then install_torch_cpu; fi
for lock in "${locks[@]}"; do
  .venv/bin/pip install --quiet --no-deps -r "$lock" || fail "the packages of $lock could not be installed; see above"
done
.venv/bin/pip install --quiet --no-deps --no-build-isolation -e . || fail "the project itself could not be installed; see above"
echo "$stamp" >"$stamp_file"
echo "set-up: done ($device, $(.venv/bin/python --version))"
