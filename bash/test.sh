#!/usr/bin/env bash
# Set-up, then lint, types and tests. Writes nothing but .venv and caches.
#   bash bash/test.sh          everything that two CPU cores can run in minutes; installs verl, Ray and vLLM
#   bash bash/test.sh --fast   from the small set-up: the tests that need neither verl nor Ray nor vLLM and are not long;
#                              about 4 minutes on 2 cores after set-up
#   bash bash/test.sh --slow   also the tests that take a minute or more each, and the benchmarks (tests/benchmarks)
# Further arguments go to pytest. Tests marked gpu run by hand: pytest -m gpu.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(--full --dev)
selection="not gpu and not slow and not benchmark"
workers=()
case ${1:-} in
  --fast) packages=(--dev); selection="$selection and not full and not long"; workers=(-n 2 --dist loadfile); shift; export OMP_NUM_THREADS=1 ;; # two workers, a core each
  --slow) selection="not gpu"; shift ;;
esac

bash bash/setup.sh "${packages[@]}"
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
.venv/bin/python -m pytest -m "$selection" "${workers[@]}" "$@"
