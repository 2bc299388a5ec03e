#!/usr/bin/env bash
# The record of a study, to be committed: settings, versions, machine, times, table, claims, every training's figures, the
# registration that it ran under. A record that is there is kept, unless --force.
# Reads $SECTION/seeds.json, times.tsv, ranks.json and scaling.json (default section41_42), and claims.json ($CLAIMS), in seed
# 0's $RESULTS_DIR, and the run folders in $CKPT_DIR.
# Writes results/records/$STUDY.json ($OUTPUT). Seconds.
# Usage: [SEEDS=3] bash bash/record.sh [--force] [command="'…'"] [notes="['…']"]
export SECTION=${SECTION:-section41_42}
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

OUTPUT=${OUTPUT:-results/records/$STUDY.json}
words=(profile:"compositionality/config/profile/$PROFILE.yaml")
ranks=()
if [[ -f $RESULTS_DIR/$SECTION/ranks.json ]]; then ranks=(ranks="$RESULTS_DIR/$SECTION/ranks.json"); fi
fits=()
for resource in flops flops_paper completions; do
  path=$RESULTS_DIR/$SECTION/$resource/scaling.json
  if [[ -f $path ]]; then fits+=("$resource:$path"); fi
done
if ((${#fits[@]})); then ranks+=(fits="[$(list "${fits[@]}")]"); fi
registered=()
if [[ -d $RESULTS_DIR/registration ]]; then registered=(registration="$RESULTS_DIR/registration"); fi
if [[ -n ${REGISTRATION:-} ]]; then registered+=(command="REGISTRATION=$REGISTRATION bash bash/confirmatory.sh"); fi
runs=$("$PYTHON" -m compositionality.study runs)

run write_record seeds="$RESULTS_DIR/$SECTION/seeds.json" claims="${CLAIMS:-$RESULTS_DIR/claims.json}" output="$OUTPUT" \
  config="[$(list "${words[@]}")]" times="[$(list "all:$RESULTS_DIR/$SECTION/times.tsv")]" runs="[$runs]" \
  "${ranks[@]}" "${registered[@]}" "$@"
