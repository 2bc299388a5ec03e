# Which problems are in which file: the settings of every problem file by task, mode and name, for create_problems of
# bash/lib.sh, which sources this. The sizes are the profile's.

# ---- strings

string_options_paper() {
  case $1 in
    stage1_level1/train) echo stage=1 split=train count=50000 ;;
    stage1_level1/test) echo stage=1 split=test count=128 ;;
    stage2_level1/train) echo stage=2 split=train count=50000 ;;
    stage2_level2/train) echo stage=2 split=train min_level=2 max_level=2 count=50000 ;;
    stage2_level1to2/train) echo stage=2 split=train min_level=1 max_level=2 count=50000 ;;
    stage2_level1to8/test) echo stage=2 split=test min_level=1 max_level=8 count=2048 ;;
  esac
}

# Splits and seeds share no problem by construction; the test files also refuse any composition that was trained on.
string_options_clean() {
  local levels validation test test_avoids
  levels=[$(seq -s, 1 "$LEVELS")]
  validation="split=validation seed=$SEED levels=$levels count=$((VALIDATION_PER_LEVEL * LEVELS))"
  test="split=test seed=$TEST_SEED levels=$levels count=$((TEST_PER_LEVEL * LEVELS))"
  test_avoids="avoid=[$DATA_DIR/string_task/stage2_level1to2/train.parquet,$DATA_DIR/string_task/stage2_level2/train.parquet]"
  case $1 in
    stage1_level1/train) echo split=train seed="$SEED" functions=all show_definitions=true count="$STAGE1_PROBLEMS" ;;
    stage2_level1/train) echo split=train seed=$((SEED + 1)) count="$STAGE2_PROBLEMS" ;;
    stage2_level2/train) echo split=train seed=$((SEED + 2)) levels=[2] count="$STAGE2_PROBLEMS" ;;
    stage2_level1to2/train) echo split=train seed=$((SEED + 3)) levels=[1,2] count="$STAGE2_PROBLEMS" ;;
    validation_trained) echo "$validation" ;;
    validation_heldout) echo "$validation" functions=heldout ;;
    test_trained) echo "$test" ;;
    test_heldout) echo "$test" functions=heldout "$test_avoids" ;;
  esac
}

# ---- Countdown

countdown_options_paper() {
  case $1 in
    stage1_level2/train) echo levels=[2] count=50000 ;;
    test) echo levels=[3,4,5] count=$((3 * COUNTDOWN_TEST_PER_LEVEL)) ;;
  esac
}

# Two numbers stand in files of their own: there are few such problems where numbers are small.
countdown_options_clean() {
  case $1 in
    stage1_level2/train) echo split=train seed="$SEED" levels=[2] count="$COUNTDOWN_PROBLEMS" ;;
    validation) echo split=validation seed="$SEED" levels=[3,4,5] count=$((3 * COUNTDOWN_VALIDATION_PER_LEVEL)) ;;
    validation_level2) echo split=validation seed="$SEED" levels=[2] count="$COUNTDOWN_LEVEL2" ;;
    test) echo split=test seed="$TEST_SEED" levels=[3,4,5] count=$((3 * COUNTDOWN_TEST_PER_LEVEL)) ;;
    test_level2) echo split=test seed="$TEST_SEED" levels=[2] count="$COUNTDOWN_LEVEL2" ;;
  esac
}
