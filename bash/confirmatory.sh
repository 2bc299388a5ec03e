#!/usr/bin/env bash
# A confirmatory study: exactly what a registration says. For each seed base model and Stage 1, then for each
# split of the functions the problems, the arms, accuracy, pass@k and failure modes; claims, page and record over all replicates.
# The registration and the code must be committed first, so that the claims are older than the test problems. All
# replicates are run, whatever they show. As many steps run at a time as there are cores (lanes=N), each on one core.
# Steps whose results exist are skipped; stopped at any moment, it continues when run again. Once the
# results of a replicate are complete, its models and completions are not needed: delete them, or move them to another machine.
# Reads compositionality/config/registrations/$REGISTRATION.yaml (a name, or a path that ends in .yaml; composition-2 runs at its commit).
# Writes {data,checkpoints,results}/NAME/seedN[-splitM], the page in results/NAME/report, and results/records/NAME.
# One replicate at a time: REPLICATES=1 runs the next missing one and writes results/records/NAME/seedN-splitM (tables, training
# steps); commit it. A fresh clone continues with the next. When all are committed: claims, page, record, without training.
# Usage: [DRY_RUN=1] bash bash/confirmatory.sh [STUDY=NAME] [REPLICATES=1] [register=true | --post-hoc]; REGISTRATION: a path
# register=true, before the commit: writes the hashes of claims and recipe into the registration, and runs nothing.
# --post-hoc: decides claims that have changed since again, and marks them. key=value and --force are refused, as are
# variables of bash/env.sh other than those of machine and folders.
case " $* " in *" --help "* | *" -h "*) sed -En '2,/^[^#]/s/^#( |$)//p' "$0" && exit ;; esac
set -euo pipefail
while [[ ${1:-} == [A-Z]*=* ]]; do export "${1?}" && shift; done
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PYTHON=${PYTHON:-.venv/bin/python}
[[ -n $(command -v "$PYTHON") ]] || { echo "error: no $PYTHON; run: bash bash/setup.sh" >&2 && exit 2; }
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec "$PYTHON" examples/run_study.py registration="${REGISTRATION:-${STUDY:-composition-2}}" ${REPLICATES:+replicates="$REPLICATES"} "$@"
