#!/usr/bin/env bash
# iGSM problems, the same for all arms: to write solutions for (SFT), for RL, to validate and to test on; the level is the
# number of operations. Test problems, and the queries of influence.sh, depend on $TEST_SEED alone; test problems harder
# than any of SFT and RL are the set "ood".
# Reads nothing. Writes $DATA_DIR/igsm_task/{sft,rl,validation,queries,test,test_ood}.parquet. Tiny: half a minute.
export SECTION=behavior_injection
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

OUTPUT=${OUTPUT:-$DATA_DIR/igsm_task}
read -ra trained <<<"$IGSM_TRAIN_LEVELS"
hardest=$(printf '%s\n' "${trained[@]}" | sort -n | tail -n 1) easy=() hard=()
for level in $IGSM_TEST_LEVELS; do if ((level > hardest)); then hard+=("$level"); else easy+=("$level"); fi; done

((${#easy[@]})) || fail "IGSM_TEST_LEVELS=$IGSM_TEST_LEVELS: give one that is trained on too (at most $hardest)"

# create NAME LEVELS key=value …: one file.
create() { run create_problems task=igsm output="$OUTPUT/$1.parquet" levels="[${2// /,}]" workers="$CORES" "${@:3}"; }

create sft "$IGSM_TRAIN_LEVELS" law="$IGSM_LAW" split=train seed="$SEED" count="$IGSM_SFT_COUNT" "$@"
create rl "$IGSM_TRAIN_LEVELS" law="$IGSM_LAW" split=train seed=$((SEED + 100000)) count="$IGSM_RL_COUNT" "$@"
create validation "$IGSM_VALIDATION_LEVELS" split=validation seed="$SEED" count="$IGSM_VALIDATION_COUNT" "$@"
create queries "$IGSM_TRAIN_LEVELS" law="$IGSM_LAW" split=validation seed="$TEST_SEED" count="$IGSM_QUERY_COUNT" "$@"
create test "${easy[*]}" split=test seed="$TEST_SEED" count=$((${#easy[@]} * IGSM_TEST_PER_LEVEL)) "$@"
if ((${#hard[@]})); then
  create test_ood "${hard[*]}" group=ood split=test seed="$TEST_SEED" count=$((${#hard[@]} * IGSM_TEST_PER_LEVEL)) "$@"
fi
