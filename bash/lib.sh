# What the scripts under bash/ share. Sourced, never run: settings, the profile, paths, and one function per verb.
#
#   PROFILE     tiny (default without a GPU) | single | paper: the file bash/profiles/$PROFILE.sh
#   MODEL_PATH  the model that a step starts from; each script says its default
#   DATA_DIR    problems and training data       (default data/$PROFILE)
#   CKPT_DIR    trained models                   (default checkpoints/$PROFILE)
#   RESULTS_DIR rollouts and tables              (default results/$PROFILE)
#   SEED        of problems, rollouts and training (default 0; another one has folders of its own, $PROFILE-seed$SEED)
#   NNODES, RAY_ADDRESS, N_GPUS  nodes, an existing Ray cluster, GPUs per node (default: as many as there are)
#   DRY_RUN=1   print every command and compose the training configurations; run nothing

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if nvidia-smi -L >/dev/null 2>&1; then DEVICE=${DEVICE:-gpu}; else DEVICE=${DEVICE:-cpu}; fi
if [[ $DEVICE == cpu ]]; then PROFILE=${PROFILE:-tiny}; else PROFILE=${PROFILE:-single}; fi
if [[ ! -f bash/profiles/$PROFILE.sh ]]; then
  echo "error: no profile $PROFILE; there are: $(basename -s .sh -a bash/profiles/*.sh | xargs)" >&2
  exit 2
fi
SEED=${SEED:-0}
study=$PROFILE
if ((SEED != 0)); then study=$PROFILE-seed$SEED; fi
DATA_DIR=${DATA_DIR:-data/$study}
CKPT_DIR=${CKPT_DIR:-checkpoints/$study}
RESULTS_DIR=${RESULTS_DIR:-results/$study}
ITERATION=${ITERATION:-0}
export DEVICE PROFILE DATA_DIR CKPT_DIR RESULTS_DIR SEED
# shellcheck source=bash/profiles/tiny.sh
source "bash/profiles/$PROFILE.sh"
STRING=$DATA_DIR/string_task
# RFT_BUDGET=rl: iterative RFT samples as many answers as RL does, and as many to a problem.
if [[ ${RFT_BUDGET:-} == rl ]]; then RFT_SAMPLES=$RL_GROUP; fi

PYTHON_BIN=.venv/bin/python
if [[ ! -x $PYTHON_BIN ]]; then
  echo "error: no .venv; run: bash bash/setup.sh" >&2
  exit 2
fi
# Where .pyc files are switched off, each of the ten processes of a verl run would compile torch and verl anew.
unset PYTHONDONTWRITEBYTECODE

# step NAME [key=value …]: print and run one entry point of examples/.
step() {
  { printf '+ %s' "$PYTHON_BIN examples/$1.py" && printf ' %q' "${@:2}" && echo; } >&2
  if [[ -z ${DRY_RUN:-} ]]; then
    "$PYTHON_BIN" "examples/$1.py" "${@:2}"
  elif [[ $1 == train_* ]]; then
    "$PYTHON_BIN" "examples/$1.py" "${@:2}" --dry-run
  fi
}

# script NAME [options]: run another script of bash/ with the same settings.
script() {
  printf '\n== %s\n' "bash/$1.sh" >&2
  bash "bash/$1.sh" "${@:2}"
}

# force_in "$@": --force if it is among the arguments, for the second command of a script.
force_in() {
  local word
  for word in "$@"; do if [[ $word == --force ]]; then echo --force; fi; done
}

# create_problems NAME [key=value …]: one problem file, $STRING/NAME.parquet, in the profile's mode.
create_problems() {
  step create_problems output="$STRING/$1.parquet" mode="$MODE" $("problem_options_$MODE" "$1") "${STRING_OPTIONS[@]}" "${@:2}"
}

problem_options_paper() {
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
problem_options_clean() {
  local levels test_avoids="avoid=[$STRING/stage2_level1to2/train.parquet,$STRING/stage2_level2/train.parquet]"
  levels=[$(seq -s, 1 "$LEVELS")]
  case $1 in
    stage1_level1/train) echo split=train seed="$SEED" functions=all show_definitions=true count="$STAGE1_PROBLEMS" ;;
    stage2_level1/train) echo split=train seed=$((SEED + 1)) count="$STAGE2_PROBLEMS" ;;
    stage2_level2/train) echo split=train seed=$((SEED + 2)) levels=[2] count="$STAGE2_PROBLEMS" ;;
    stage2_level1to2/train) echo split=train seed=$((SEED + 3)) levels=[1,2] count="$STAGE2_PROBLEMS" ;;
    validation) echo split=validation functions=heldout levels="$levels" count=$((VALIDATION_PER_LEVEL * LEVELS)) ;;
    test_heldout) echo split=test functions=heldout levels="$levels" count=$((TEST_PER_LEVEL * LEVELS)) "$test_avoids" ;;
    test_trained) echo split=test levels="$levels" count=$((TEST_PER_LEVEL * LEVELS)) ;;
  esac
}

# collect MODEL PROBLEMS OUTPUT [key=value …]: rollouts, judged.
collect() {
  step collect_rollouts model="$1" problems="$STRING/$2.parquet" output="$STRING/$3" engine="$ENGINE" seed="$SEED" \
    max_prompt_tokens="$MAX_PROMPT" max_tokens="$MAX_RESPONSE" ray_address="${RAY_ADDRESS:-}" "${@:4}"
}

# keep_correct PROBLEMS ROLLOUTS OUTPUT [key=value …]: rejection filter → SFT rows.
keep_correct() {
  step filter_rollouts problems="$STRING/$1.parquet" "rollouts=[$STRING/$2]" output="$STRING/$3" \
    max_correct_ratio="$MAX_CORRECT_RATIO" "${@:4}"
}

# train_sft MODEL DATA RUN [overrides …]: SFT with verl on DATA/train.parquet → $CKPT_DIR/RUN.
train_sft() {
  step train_sft device="$DEVICE" lab.model="$1" lab.train_file="$STRING/$2/train.parquet" \
    lab.val_file="$STRING/$2/test.parquet" lab.output="$CKPT_DIR/$3" trainer.experiment_name="$3" \
    trainer.seed=$((SEED + 1)) "${gpus[@]}" "${SFT[@]}" "${@:4}"
}

# train_grpo MODEL PROBLEMS RUN [overrides …]: GRPO with verl → $CKPT_DIR/RUN. PROBLEMS: one file or several, "a,b".
train_grpo() {
  local files="$STRING/${2//,/.parquet,$STRING/}.parquet"
  step train_grpo device="$DEVICE" lab.model="$1" "lab.train_files=[$files]" \
    lab.val_file="$STRING/$VALIDATION_FILE.parquet" lab.output="$CKPT_DIR/$3" trainer.experiment_name="$3" \
    data.max_prompt_length="$MAX_PROMPT" data.max_response_length="$MAX_RESPONSE" \
    data.seed=$((SEED + 1)) actor_rollout_ref.rollout.seed=$((SEED + 1)) "${gpus[@]}" "${RL[@]}" "${@:4}"
}

# rft_model ITERATION: the model that an iteration of RFT starts from.
rft_model() {
  if (($1 == 0)); then echo "$CKPT_DIR/stage1-rft/final"; else echo "$CKPT_DIR/stage2-rft-iteration$(($1 - 1))/final"; fi
}

# evaluate NAME MODELS [key=value …]: accuracy by level of name:path,name:path,… on the profile's test files.
evaluate() {
  local files=("${TEST_FILES[@]/#/$STRING/}")
  files=("${files[@]/%/.parquet}")
  step evaluate "models=[$2]" "problems=[$(IFS=,; echo "${files[*]}")]" output="$RESULTS_DIR/$1" engine="$ENGINE" \
    seed="$SEED" max_prompt_tokens="$MAX_PROMPT" max_tokens="$MAX_RESPONSE" ray_address="${RAY_ADDRESS:-}" "${@:3}"
}

gpus=(${N_GPUS:+lab.processes=$N_GPUS})
