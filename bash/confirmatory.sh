#!/usr/bin/env bash
# A confirmatory study: what a registration says, all of it and nothing else. Its seeds from nothing to Stage 1, then for each
# split of the functions the problems, the arms, accuracy, pass@k and failure modes; claims, page and record over all replicates.
# The registration and the code must be committed before, so that no test problem is older than what is claimed of it; all
# replicates are run, whatever they show. As many steps at a time as there are cores (lanes=N), each on one.
# Steps whose results exist are skipped; stopped at any moment, it continues when run again. Of a replicate whose
# results are complete nothing is made again: its models and completions may be deleted, or lie on another machine.
# Reads compositionality/config/registrations/$REGISTRATION.yaml (a name, or a path that ends in .yaml; composition-2 runs at its commit).
# Writes {data,checkpoints,results}/NAME/seedN[-splitM], the page in results/NAME/report, and results/records/NAME.
# A replicate at a time: REPLICATES=1 runs the next that is not kept and writes results/records/NAME/seedN-splitM (tables, steps of
# training) to be committed at once; a fresh clone goes on with the next. When all are kept: claims, page, record, without training.
# Usage: [DRY_RUN=1] bash bash/confirmatory.sh [STUDY=NAME] [REPLICATES=1] [register=true | --post-hoc]; REGISTRATION: a path
# register=true, before it is committed: the hashes of its claims and of its recipe are written into it, and nothing runs.
# --post-hoc: claims that have changed since are decided again and marked; no key=value, no --force. Of the variables of
# bash/env.sh only those of machine and folders may be given.
case " $* " in *" --help "* | *" -h "*) sed -En '2,/^[^#]/s/^#( |$)//p' "$0" && exit ;; esac
set -euo pipefail
while [[ ${1:-} == [A-Z]*=* ]]; do export "${1?}" && shift; done
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PYTHON=${PYTHON:-.venv/bin/python}
[[ -n $(command -v "$PYTHON") ]] || { echo "error: no $PYTHON; run: bash bash/setup.sh" >&2 && exit 2; }
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec "$PYTHON" examples/run_study.py registration="${REGISTRATION:-${STUDY:-composition-2}}" ${REPLICATES:+replicates="$REPLICATES"} "$@"
