#!/usr/bin/env bash
# Set-up, then lint, types and tests. Writes only .venv and caches.
#   bash bash/test.sh          everything that two CPU cores can run in minutes; installs verl, Ray and vLLM
#   bash bash/test.sh --fast   with the small set-up: the short tests that need neither verl nor Ray nor vLLM;
#                              about 8 minutes of processor time, and set-up
#   bash bash/test.sh --slow   then also the slow tests (whole studies, killed runs, several processes) and quick benchmarks
#   bash bash/test.sh --rest   everything except the part of --fast
#   bash bash/test.sh --adapters[=NAME,…]   only the clients of compositionality/adapters, each with its real package in a separate
#                              environment, .clients/NAME (2 GB). A client that cannot run counts as failed
# Further arguments go to pytest, options without one of these words behind --.
# By hand, on an idle machine: pytest -s -m "slow and benchmark"; with a GPU: pytest -m gpu.
case " $* " in *" --help "* | *" -h "*) sed -En '2,/^[^#]/s/^#( |$)//p' "$0" && exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "error: test.sh: $*" >&2 && exit 2; }
packages=(--full --dev) chosen="not gpu and not benchmark"
quick="$chosen and not slow" lint=yes slow="" adapters="" clients=(inspect lighteval lm_eval trl verifiers verl)
two=(-n 2 --dist loadfile) # workers, a core each
case ${1:-} in
  --fast) packages=(--dev); chosen="$quick and not full and not long"; shift ;;
  --slow) slow=yes; shift ;;
  --adapters) adapters=yes; shift ;;
  --adapters=*) adapters=yes; IFS=, read -ra clients <<<"${1#*=}"; shift ;;
  --rest) chosen="$chosen and (slow or full or long)" lint="" slow=yes; shift ;;
  --) chosen=$quick; shift ;;
  --*) fail "unknown option $1; known: --fast --slow --rest --adapters[=NAME,…], and -- before options of pytest" ;;
  *) chosen=$quick ;;
esac
for word in "$@"; do
  case $word in --fast | --slow | --rest | --adapters*) fail "$word: give one such word, before all others" ;; esac
done

# tests PYTEST-ARGUMENT…: run pytest; an empty selection is not a failure. Bytecode is kept, since the tests start thousands of processes.
tests() { env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -m pytest "$@" || (($? == 5)); }

# client NAME PYTEST-ARGUMENT…: make its environment and run its tests; an empty selection (its package is missing) is a failure.
client() {
  bash bash/setup.sh --client="$1" && CLIENT=$1 OMP_NUM_THREADS=1 ".clients/$1/bin/python" -m pytest tests/adapters/test_"$1"_*.py "${@:2}"
}
if [[ -n $adapters ]]; then
  failed=()
  for name in "${clients[@]}"; do client "$name" "$@" || failed+=("$name"); done
  echo "clients: ${clients[*]}; failed: ${failed[*]:-none}"
  exit "$((${#failed[@]} > 0))"
fi

bash bash/setup.sh "${packages[@]}"
if [[ -n $lint ]]; then
  .venv/bin/ruff check .
  .venv/bin/ruff format --check .
  .venv/bin/mypy
  .venv/bin/shellcheck .ci/run bash/*.sh bash/*/*.sh bash/slurm/*.sbatch
fi
if [[ -n $slow ]]; then
  two+=(--no-loadscope-reorder --durations=20)                     # files with minutes of tests come first
  chosen+=" or benchmark and not slow and not gpu"       # these check no time: other tests may run beside them
fi
OMP_NUM_THREADS=1 tests "${two[@]}" -m "$chosen" "$@"
