#!/usr/bin/env bash
# Makes the lock files anew from pyproject.toml. Reads pyproject.toml; writes requirements-{cpu,gpu,dev}.lock; a minute.
# Needs uv, and a place with torch's CPU wheel for it to look at (TORCH_WHEELS: a folder or an index page).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
common=(--no-header --no-annotate --python-platform x86_64-manylinux_2_28 --python-version 3.11 --quiet)

# torchvision, torchaudio and torchcodec come from PyPI as CUDA builds, which a CPU torch cannot load (transformers then
# fails to import whole model families); nothing here uses them. triton is dead weight without a GPU.
overrides=$(mktemp)
trap 'rm -f "$overrides"' EXIT
cat >"$overrides" <<'END'
torch==2.13.0+cpu
torchaudio ; sys_platform == "never"
torchvision ; sys_platform == "never"
torchcodec ; sys_platform == "never"
triton ; sys_platform == "never"
END

uv pip compile pyproject.toml --extra cpu --override "$overrides" --find-links "${TORCH_WHEELS:?a folder with torch CPU wheels}" \
  "${common[@]}" -o requirements-cpu.lock
uv pip compile pyproject.toml --extra gpu "${common[@]}" -o requirements-gpu.lock

# Only what the tests add: it is installed on top of either of the others.
uv pip compile pyproject.toml --extra dev --constraint requirements-cpu.lock "${common[@]}" -o requirements-dev.lock
grep --invert-match --line-regexp --fixed-strings --file=requirements-cpu.lock requirements-dev.lock >requirements-dev.lock.new
mv requirements-dev.lock.new requirements-dev.lock
