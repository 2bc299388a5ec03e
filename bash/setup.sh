#!/usr/bin/env bash
# Creates .venv with the locked packages; does nothing if they are installed already.
#   bash bash/setup.sh           the packages of the single-file trainers (torch, transformers, pandas …): 1 minute, 1.7 GB on a CPU
#   bash bash/setup.sh --full    also verl, Ray and vLLM, for engine=verl: 2 minutes more, 3 GB in all (12 GB on a GPU)
#   bash bash/setup.sh --tensorboard  also TensorBoard, for trainer.logger=[tensorboard]; part of --full
#   bash bash/setup.sh --dev     also the packages of the tests; as root on Debian also chromium (tests of the HTML page) and
#                                bubblewrap (sandbox of model-written programs, README in compositionality/domains/code)
#   bash bash/setup.sh --flash-attn  (GPU) --full, and flash-attn, compiled here: up to an hour, needs nvcc of CUDA 13 (bash/README.md)
#   bash bash/setup.sh --client=NAME   (CPU) a separate environment, .clients/NAME, from tests/adapters/NAME.lock: bash/test.sh --adapters
# --cpu or --gpu chooses the lock files; without either, a GPU is used if nvidia-smi finds one. With --gpu the driver is checked
# first (CUDA 13: 580.65 or newer), and CUDA is tried at the end. Reads requirements-*.lock. Writes .venv or .clients/NAME.
# TORCH_INDEX_URL: the index to take torch from; with --gpu also for torch's own dependencies. An older driver (525.60 or newer)
# works with a torch for CUDA 12, https://download.pytorch.org/whl/cu126, and only with engine=single: vLLM needs CUDA 13.
# PYTHON=/path/to/python: the interpreter (3.11 or 3.12).
case " $* " in *" --help "* | *" -h "*) sed -En '2,/^[^#]/s/^#( |$)//p' "$0" && exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "error: $*" >&2; exit 2; }

device="" full="" dev="" flash="" board="" client=""
for word in "$@"; do
  case "$word" in
    --cpu | --gpu) device=${word#--} ;;
    --full) full=full ;;
    --dev) dev=dev ;;
    --tensorboard) board=board ;;
    --flash-attn) flash=flash full=full ;;
    --client=*) client=${word#*=} ;;
    *) fail "setup.sh: unknown option $word; known: --cpu --gpu --full --tensorboard --dev --flash-attn --client=NAME" ;;
  esac
done
if [[ -n $client ]]; then
  if (($# > 1)); then fail "setup.sh --client=$client: give no other option; its environment is for a CPU"; fi
  if [[ ! -f tests/adapters/$client.lock ]]; then fail "setup.sh --client=$client: tests/adapters/$client.lock does not exist"; fi
  device=cpu
fi
venv=${client:+.clients/$client} venv=${venv:-.venv}
if [[ -z $device ]]; then
  if nvidia-smi -L >/dev/null 2>&1; then device=gpu; else device=cpu; fi
fi
if [[ -n $full && $device == gpu && ${TORCH_INDEX_URL:-} == */cu12* ]]; then
  fail "setup.sh --full: vLLM is built for CUDA 13, TORCH_INDEX_URL=$TORCH_INDEX_URL is for CUDA 12; leave one of the two out"
fi
if [[ -n $flash && $device == cpu ]]; then fail "setup.sh --flash-attn: flash-attn is for GPUs; add --gpu, or leave it out"; fi
read -ra sets <<<"small $full $dev"
declare -A lock_of=([small]=requirements-$device-small.lock [full]=requirements-$device.lock [dev]=requirements-dev.lock)
if [[ -n $client ]]; then lock_of[small]=tests/adapters/$client.lock; fi

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

# The CPU wheel of torch is not on PyPI; pip's configured index may have it, PyTorch's own index has it. For a GPU this runs only
# if an index was given. The lock's CUDA packages are then left out: they would overwrite files of that torch's packages.
install_torch() {
  local pin
  pin=$(grep '^torch==' "${lock_of[small]}")
  if [[ $device == gpu ]]; then
    "$venv/bin/pip" install --quiet "$pin" --index-url "$TORCH_INDEX_URL" || fail "no $pin found at TORCH_INDEX_URL=$TORCH_INDEX_URL"
    return
  fi
  "$venv/bin/pip" install --quiet --no-deps "$pin" 2>/dev/null ||
    "$venv/bin/pip" install --quiet --no-deps "$pin" --index-url "${TORCH_INDEX_URL:-https://download.pytorch.org/whl/cpu}" ||
    fail "no CPU wheel of $pin found; set TORCH_INDEX_URL to an index that has it"
}

# stamp SET: hash of what its packages come from; is_installed SET: its stamp file is current (without TORCH_INDEX_URL: any index).
stamp() { echo "$(cat "${lock_of[$1]}" pyproject.toml bash/setup.sh | sha256sum | cut -c1-16) ${TORCH_INDEX_URL:-}"; }
is_installed() {
  local file=$venv/.installed-$device-$1
  [[ -f $file && $(<"$file") == "$(stamp "$1")"* ]]
}

# install SET: installs the packages of its lock file, unless this was done.
install() {
  local lock=${lock_of[$1]} packages=(-r "${lock_of[$1]}")
  if is_installed "$1"; then return; fi
  if [[ $device == gpu && -n ${TORCH_INDEX_URL:-} ]]; then mapfile -t packages < <(grep -Ev '^(nvidia-|cuda-|triton=)' "$lock"); fi
  echo "set-up: installing the $(wc -l <"$lock") packages of $lock into $venv"
  if [[ $1 == small && ($device == cpu || -n ${TORCH_INDEX_URL:-}) ]]; then install_torch; fi
  "$venv/bin/pip" install --quiet --no-deps "${packages[@]}" || fail "the packages of $lock could not be installed; see above"
  if [[ $1 == small ]]; then
    "$venv/bin/pip" install --quiet --no-deps --no-build-isolation -e . || fail "the project itself could not be installed; see above"
  fi
  stamp "$1" >"$venv/.installed-$device-$1"
}

# TensorBoard and its requirements outside the small set, as pinned by the lock of --full.
install_tensorboard() {
  local pins stamp=.venv/.installed-$device-tensorboard
  mapfile -t pins < <(grep -E '^(absl-py|grpcio|markdown|pillow|tensorboard|tensorboard-data-server|werkzeug)==' "${lock_of[full]}")
  if [[ -f $stamp && $(<"$stamp") == "${pins[*]}" ]]; then return; fi
  echo "set-up: installing TensorBoard into .venv"
  .venv/bin/pip install --quiet --no-deps "${pins[@]}" || fail "${pins[*]} could not be installed; see above"
  echo "${pins[*]}" >"$stamp"
}

# Fail without the compiler that --flash-attn needs, before anything is downloaded: flash-attn has no wheel for this CUDA and torch.
check_nvcc() {
  local nvcc=nvcc version problem
  if [[ -n ${CUDA_HOME:-} ]]; then nvcc=$CUDA_HOME/bin/nvcc; fi
  version=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p') || true
  if [[ $version != 13.* ]]; then
    if [[ -n $version ]]; then problem="$nvcc is from CUDA $version"; else problem="$nvcc was not found"; fi
    fail "setup.sh --flash-attn: compiling it needs nvcc of CUDA 13, but $problem;" \
      "install CUDA toolkit 13 (or load its module) and set CUDA_HOME, or leave --flash-attn out"
  fi
}

# Compiles flash-attn against the installed torch, for the GPUs of this machine. MAX_JOBS: compilers at a time, 8 GB each.
install_flash_attn() {
  local pin stamp=.venv/.installed-flash-attn jobs archs
  pin=$(grep -o 'flash-attn==[0-9.]*' pyproject.toml)
  if [[ -f $stamp && $(<"$stamp") == "$pin $(grep '^torch==' "${lock_of[small]}")" ]]; then return; fi
  jobs=$(awk '/MemAvailable/ { print int($2 / 8e6) }' /proc/meminfo)
  if ((jobs > $(nproc))); then jobs=$(nproc); fi
  # GPUs of 8.x run code compiled for 8.0, and so on; without a GPU compile for all architectures of flash-attn
  archs=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed 's/\..*/0/' | sort -u | paste -sd ';') || true
  echo "set-up: compiling $pin, an hour or less; its output goes to .venv/.flash-attn.log"
  .venv/bin/pip install --quiet --no-deps wheel==0.45.1 || fail "wheel, for compiling $pin, could not be installed; see above"
  # Its own search for a wheel would pick one for CUDA 12.
  if ! MAX_JOBS=${MAX_JOBS:-$((jobs > 1 ? jobs : 1))} FLASH_ATTN_CUDA_ARCHS=${FLASH_ATTN_CUDA_ARCHS:-${archs:-80;90;100;120}} \
    FLASH_ATTENTION_FORCE_BUILD=TRUE .venv/bin/pip install --no-deps --no-build-isolation "$pin" >.venv/.flash-attn.log 2>&1; then
    fail "$pin could not be compiled, see .venv/.flash-attn.log (killed: lower MAX_JOBS); everything runs without it, with sdpa"
  fi
  .venv/bin/python -c "import flash_attn" || fail "$pin was compiled but cannot be imported; see above"
  echo "$pin $(grep '^torch==' "${lock_of[small]}")" >"$stamp"
}

# install_debian PACKAGE WARNING COMMAND…: install a Debian package unless one of its commands exists; a failure prints WARNING.
install_debian() {
  local package=$1 without=$2
  if command -v "${@:3}" >/dev/null; then return; fi
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "set-up: $package is missing, and only root with apt-get can install it; $without" >&2
    return
  fi
  echo "set-up: installing $package"
  # two set-ups at the same time: one waits, otherwise apt-get would fail
  if ! flock /var/lib/apt sh -c "apt-get update -q && apt-get install -qy --no-install-recommends $package" &>".venv/.$package.log"; then
    echo "set-up: $package could not be installed (see .venv/.$package.log); $without" >&2
  fi
}

if [[ -n $flash ]]; then check_nvcc; fi
python=$venv/bin/python
if [[ ! -x $venv/bin/pip ]]; then python=$(find_python); fi
if [[ $device == gpu && -z ${TORCH_INDEX_URL:-} ]] && ! is_installed small; then "$python" -m compositionality.gpus driver || exit 2; fi

mkdir -p "$venv"
exec 9>"$venv/.setup.lock"
# Two scripts started together would install into the same folder.
flock 9 2>/dev/null || echo "set-up: no flock on the file system of $venv; start no other set-up until this one has ended" >&2

if [[ ! -x $venv/bin/pip ]]; then
  "$python" -m venv "$venv" || fail "$python cannot create a virtual environment; on Debian: apt-get install python3-venv"
fi
for name in "${sets[@]}"; do install "$name"; done
if [[ -n $board && -z $full ]]; then install_tensorboard; fi
if [[ -n $flash ]]; then install_flash_attn; fi
if [[ -n $dev ]]; then
  install_debian chromium "the tests of the HTML page will be skipped" chromium chromium-browser google-chrome
  install_debian bubblewrap "programs written by models will run without namespaces" bwrap
fi
if [[ $device == gpu ]]; then env -u CUDA_VISIBLE_DEVICES .venv/bin/python -m compositionality.gpus cuda || exit 2; fi
echo "set-up: $venv is ready ($device, ${client:-${sets[*]}}, $("$venv/bin/python" --version))"
