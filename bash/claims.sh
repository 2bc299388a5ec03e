#!/usr/bin/env bash
# The paper's claims compared with what was run of this profile, all sections and seeds that are there: our figures,
# intervals, decisions, and what would decide the undecided ones. Claims about results that are missing are "not run".
# SECTION=behavior_injection: those of its paper, on behavior_injection/results.parquet, influence/ and section44/, and
# section41_42/results.parquet of strings (in STRING_RESULTS_DIR, if not where the scripts put it). SECTION=scaling_law: on
# scaling_law/results.parquet of the seeds and scaling_law/{flops,completions}/scaling.json of all of them.
# Reads section41_42/results.parquet, section43{,-strings}/results.parquet, section44/ and section45/ of the seeds 0 … SEEDS-1.
# Writes claims.json in seed 0's $RESULTS_DIR; with markdown=results/README.md the claims' place there too.
# COUNTDOWN_RESULTS_DIR: where section 4.3's results are, if not where its scripts put them. OTHER_RESULTS_DIR: of behaviour
# injection from another base model (default: $RESULTS_DIR-other).
# Of a registered study (bash/confirmatory.sh starts this) each claim is marked as primary, secondary or exploratory.
# Usage: [SECTION=behavior_injection|scaling_law] [SEEDS=3] bash bash/claims.sh [markdown=results/README.md]
case ${SECTION:-} in "" | section4[345]) SECTION=section41_42 ;; esac
export SECTION
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

OUTPUT=${OUTPUT:-$RESULTS_DIR/claims.json}
results=( # names as in compositionality/config/claims
  accuracy "$RESULTS_DIR" section41_42/results.parquet
  countdown "$COUNTDOWN_RESULTS_DIR" section43/results.parquet
  strings "$COUNTDOWN_RESULTS_DIR" section43-strings/results.parquet
  passk "$RESULTS_DIR" section44/results.parquet
  failures "$RESULTS_DIR" section45/results.parquet
)
claims=()
if [[ $SECTION == behavior_injection ]]; then
  results=(
    igsm "$RESULTS_DIR" "$SECTION/results.parquet"
    igsm-other "${OTHER_RESULTS_DIR:-$RESULTS_DIR-other}" "$SECTION/results.parquet"
    influence "$RESULTS_DIR" influence
    passk "$RESULTS_DIR" section44/results.parquet
    strings "${STRING_RESULTS_DIR:-${RESULTS_DIR/-injection/}}" section41_42/results.parquet
  )
  claims=(claims="$SECTION")
fi
if [[ $SECTION == scaling_law ]]; then
  results=(
    scaling "$RESULTS_DIR" "$SECTION/flops/scaling.json"
    completions "$RESULTS_DIR" "$SECTION/completions/scaling.json"
    accuracy "$RESULTS_DIR" "$SECTION/results.parquet"
  )
  claims=(claims="$SECTION")
fi
"$PYTHON" -m compositionality.study recipes
made=$("$PYTHON" -m compositionality.study results "${results[@]}")
registered=()
if [[ -d $RESULTS_DIR/registration ]]; then registered=(registration="$RESULTS_DIR/registration"); fi

run claims results="[$made]" output="$OUTPUT" "${claims[@]}" "${registered[@]}" "$@"
