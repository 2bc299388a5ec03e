#!/usr/bin/env bash
# Resolves pyproject.toml into requirements-{cpu,gpu}{,-small}.lock and requirements-dev.lock, and for each client into
# tests/adapters/NAME.lock (--clients: only these); takes a minute. Pins that still fit are kept; delete a lock file first to get
# the newest versions. Then records the requirements of the packages that are only in the GPU lock in tests/gpu_requirements.json:
# tests/test_locks.py checks all locks against Python 3.11 and 3.12.
# Needs uv, pip (minutes) and TORCH_WHEELS: a folder or an index page with the CPU wheel of torch.
case " $* " in *" --help "* | *" -h "*) sed -En '2,/^[^#]/s/^#( |$)//p' "$0" && exit ;; esac
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
common=(--no-header --no-annotate --python-platform x86_64-manylinux_2_28 --python-version 3.11 --quiet)

# torchvision, torchaudio and torchcodec come from PyPI as CUDA builds, which a CPU torch cannot load (transformers then
# fails to import whole model families); nothing here uses them. triton is of no use without a GPU.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
overrides=$work/overrides own=$work/own report=$work/report
cat >"$overrides" <<'END'
torch==2.13.0+cpu
torchaudio ; sys_platform == "never"
torchvision ; sys_platform == "never"
torchcodec ; sys_platform == "never"
triton ; sys_platform == "never"
END
cpu=(--override "$overrides" --find-links "${TORCH_WHEELS:?a folder with torch CPU wheels}")

declare -A clients=(
  [inspect]="inspect-ai openai" # openai: needed for openai/MODEL, but not a requirement of inspect-ai
  [lighteval]=lighteval
  [lm_eval]="lm-eval[hf,api]"
  [trl]=trl
  [verifiers]="verifiers uv" # its chat program is started with uv
  [verl]="" # what --full installs
)
# LightEval starts only with these versions; math-verify (the judge of mathematics) and Hydra (engine=verl) do not.
lighteval_pins=(latex2sympy2-extended==1.0.6 antlr4-python3-runtime==4.13.2 'xxhash<4' 'hydra-core ; sys_platform == "never"')
for name in "${!clients[@]}"; do
  if [[ $name == lighteval ]]; then printf '%s\n' "${lighteval_pins[@]}"; fi >"$own"
  full=() && if [[ $name == verl ]]; then full=(--extra cpu --constraint requirements-cpu.lock); fi
  # shellcheck disable=SC2086 # words
  printf '%s\n' ${clients[$name]} pytest pytest-benchmark pytest-timeout setuptools |
    uv pip compile pyproject.toml - "${cpu[@]}" "${full[@]}" --override "$own" "${common[@]}" -o "tests/adapters/$name.lock"
done
[[ ${1:-} != --clients ]] || exit 0

uv pip compile pyproject.toml --extra cpu "${cpu[@]}" "${common[@]}" -o requirements-cpu.lock
uv pip compile pyproject.toml --extra gpu "${common[@]}" -o requirements-gpu.lock

# The requirements of the single-file trainers, and wandb: a subset of the full set with the same pins, so that --full only adds.
uv pip compile pyproject.toml --extra wandb --constraint requirements-cpu.lock "${cpu[@]}" "${common[@]}" -o requirements-cpu-small.lock
uv pip compile pyproject.toml --extra wandb --constraint requirements-gpu.lock "${common[@]}" -o requirements-gpu-small.lock

# Only what the tests add to the small set; it is installed on top of the small or the full set and shares their pins.
uv pip compile pyproject.toml --extra dev --constraint requirements-cpu.lock "${cpu[@]}" "${common[@]}" -o requirements-dev.lock
grep --invert-match --line-regexp --fixed-strings --file=requirements-cpu-small.lock requirements-dev.lock >requirements-dev.lock.new
mv requirements-dev.lock.new requirements-dev.lock

.venv/bin/pip install --quiet --dry-run --ignore-installed --no-deps --report "$report" --requirement \
  <(grep --invert-match --line-regexp --fixed-strings --file=requirements-cpu.lock --file=requirements-dev.lock requirements-gpu.lock)
.venv/bin/python tests/record_requirements.py "$report" >tests/gpu_requirements.json
