#!/usr/bin/env bash
# Stage 2, problems: definitions hidden. Training on the trained functions, tests on compositions of functions that no
# training problem composes; FUNCTION_SPLIT says which. Splits and seeds share no problem by construction; the held-out
# files also refuse any composition that was trained on. Order-sensitive problems are a test file of their own.
# Reads nothing. Writes stage2_level1/train, stage2_level2/train, stage2_level1to2/train, the validation and the test
# files (paper: stage2_level1to8/test), or those named in $ONLY; the test problems depend on $TEST_SEED and
# $FUNCTION_SPLIT alone. Seconds.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

OUTPUT=${OUTPUT:-$DATA_DIR/string_task}
levels=[$(seq -s, 1 "$STRING_LEVELS")]
read -ra test_levels <<<"$STRING_TEST_LEVELS"
read -ra ordered_levels <<<"$STRING_ORDERED_LEVELS"
validation=(split=validation seed="$SEED" "levels=$levels" count=$((STRING_VALIDATION_PER_LEVEL * STRING_LEVELS)))
tests=(split=test seed="$TEST_SEED" "levels=[$(list "${test_levels[@]}")]")
tests+=(count=$((STRING_TEST_PER_LEVEL * ${#test_levels[@]})))

# create NAME [key=value …]: one file, unless ONLY names others.
create() {
  if [[ " ${ONLY:-$1} " != *" $1 "* ]]; then return; fi
  run create_problems task=string mode="$STRING_MODE" output="$OUTPUT/$1.parquet" workers="$CORES" "${@:2}"
}

if [[ $STRING_MODE == paper ]]; then
  create stage2_level1/train stage=2 split=train count="$STRING_STAGE2_COUNT" "$@"
  create stage2_level2/train stage=2 split=train min_level=2 max_level=2 count="$STRING_STAGE2_COUNT" "$@"
  create stage2_level1to8/test stage=2 split=test min_level=1 max_level=8 count=$((STRING_TEST_PER_LEVEL * 8)) "$@"
  exit
fi
set -- function_split="$FUNCTION_SPLIT" "$@"
trained=() # compositions that no held-out problem may have
for name in stage2_level1to2/train stage2_level2/train; do
  if [[ " ${ONLY:-$name} " == *" $name "* || -f $OUTPUT/$name.parquet ]]; then trained+=("$OUTPUT/$name.parquet"); fi
done
heldout=(functions=heldout avoid="[$(list "${trained[@]}")]")
create stage2_level1/train split=train seed=$((SEED + 1)) count="$STRING_STAGE2_COUNT" "$@"
create stage2_level2/train split=train seed=$((SEED + 2)) levels=[2] count="$STRING_STAGE2_COUNT" "$@"
create stage2_level1to2/train split=train seed=$((SEED + 3)) levels=[1,2] count="$STRING_STAGE2_COUNT" "$@"
create validation_heldout "${validation[@]}" "${heldout[@]}" "$@"
create validation_trained "${validation[@]}" "$@"
create test_trained "${tests[@]}" "$@"
create test_heldout "${tests[@]}" "${heldout[@]}" "$@"
if ((${#ordered_levels[@]})); then
  create test_heldout_ordered split=test seed="$TEST_SEED" "levels=[$(list "${ordered_levels[@]}")]" \
    count=$((STRING_TEST_PER_LEVEL * ${#ordered_levels[@]})) order_sensitive=true "${heldout[@]}" "$@"
fi
