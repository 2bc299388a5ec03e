# What the scripts under bash/ share. Sourced, never run: settings, the profile, paths, and one function per verb.
#
#   PROFILE     tiny (default without a GPU) | smoke | single (default with one) | instruct | paper: bash/profiles/$PROFILE.sh
#   ENGINE      single: the single-file trainers | verl: verl, Ray and vLLM (bash/setup.sh --full); the profile has a default
#   ROLLOUT_ENGINE  what answers problems: builtin | vllm | ray | transformers | openai; the profile has a default
#   MODEL_PATH  the model that a step starts from; each script says its default
#   DATA_DIR    problems and training data       (default data/$PROFILE, with -verl where verl is not the profile's engine)
#   CKPT_DIR    trained models                   (default checkpoints/…, likewise)
#   RESULTS_DIR rollouts and tables              (default results/…, likewise)
#   SEED        of problems, rollouts and training (default 0; another one has folders of its own, with -seed$SEED)
#   SEEDS=N     run_all.sh, quickstart.sh: seeds 0 … N-1, then their summary
#   TEST_SEED   of the test problems, the same whatever SEED is (default 2027)
#   ARMS        run_all.sh, quickstart.sh: which arms of Stage 2 (those that the section's arm.sh names)
#   LANES, PROCESSES  arms at a time; processes of one training where nothing runs beside it (default: by cores or GPUs)
#   NNODES, RAY_ADDRESS, N_GPUS  nodes, an existing Ray cluster, GPUs per node (default: as many as there are)
#   DRY_RUN=1   print every command and check the training configurations; run nothing

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "error: $*" >&2; exit 2; }

n_gpus() { nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true; }

# ---- settings

if nvidia-smi -L >/dev/null 2>&1; then DEVICE=${DEVICE:-gpu}; else DEVICE=${DEVICE:-cpu}; fi
if [[ $DEVICE == cpu ]]; then PROFILE=${PROFILE:-tiny}; else PROFILE=${PROFILE:-single}; fi
if [[ ! -f bash/profiles/$PROFILE.sh ]]; then
  fail "no profile $PROFILE; there are: $(basename -s .sh -a bash/profiles/*.sh | xargs)"
fi
SEED=${SEED:-0}
SEEDS=${SEEDS:-1}
TEST_SEED=${TEST_SEED:-2027}
SECTION=${SECTION:-section41_42} # the scripts of another section name theirs before they source this file
ITERATION=${ITERATION:-0}
ARMS=${ARMS:-}
LANES=${LANES:-}
# shellcheck source=bash/profiles/tiny.sh
source "bash/profiles/$PROFILE.sh"
case $ENGINE in
  single | verl) ;;
  *) fail "no engine $ENGINE; there are: single verl (what answers problems is ROLLOUT_ENGINE)" ;;
esac
[[ $SEED =~ ^[0-9]+$ && $SEEDS =~ ^[1-9][0-9]*$ ]] || fail "SEED=$SEED SEEDS=$SEEDS: whole numbers, SEEDS at least 1"

# The profile's numbers for this engine, under names without its own.
declare -p "RL_${ENGINE^^}" >/dev/null 2>&1 || fail "profile $PROFILE has no numbers for ENGINE=$ENGINE"
declare -n PRETRAIN=PRETRAIN_${ENGINE^^} SFT=SFT_${ENGINE^^} STAGE1_SFT=STAGE1_SFT_${ENGINE^^} RL=RL_${ENGINE^^} \
  RL_LEVEL1=RL_LEVEL1_${ENGINE^^} RFT_SFT=RFT_SFT_${ENGINE^^}

study=$PROFILE
# A base model that is made here knows what its text was about, and section 4.3 asks for numbers: a study of its own.
if [[ $SECTION == section43 ]] && declare -p "PRETRAIN_COUNTDOWN_${ENGINE^^}" >/dev/null 2>&1; then
  declare -n PRETRAIN_COUNTDOWN=PRETRAIN_COUNTDOWN_${ENGINE^^}
  study+=-countdown PRETRAIN+=("${PRETRAIN_COUNTDOWN[@]}")
fi
# STUDY_ENGINE: in whose folders to work, for one arm through the other engine.
if [[ ${STUDY_ENGINE:-$ENGINE} != "$DEFAULT_ENGINE" ]]; then study+=-${STUDY_ENGINE:-$ENGINE}; fi
# wandb, where it is used: one group for all seeds of a study, the seed as a tag.
export WANDB_RUN_GROUP=${WANDB_RUN_GROUP:-$study} WANDB_TAGS=seed$SEED
if ((SEED != 0)); then study+=-seed$SEED; fi
DATA_DIR=${DATA_DIR:-data/$study}
CKPT_DIR=${CKPT_DIR:-checkpoints/$study}
RESULTS_DIR=${RESULTS_DIR:-results/$study}
BASE_MODEL=${BASE_MODEL:-$CKPT_DIR/base} # made by section41_42/stage0_pretrain.sh where the profile names no other
export DEVICE PROFILE ENGINE SECTION DATA_DIR CKPT_DIR RESULTS_DIR SEED TEST_SEED

# RFT_BUDGET=rl: iterative RFT samples as many answers as RL does, in folders of its own.
case ${RFT_BUDGET:=original} in
  original) rft=rft ;;
  rl) rft=rft-matched RFT_SAMPLES=$RFT_MATCHED_SAMPLES ;;
  *) fail "RFT_BUDGET=$RFT_BUDGET: choose original or rl" ;;
esac
RFT_RUN=stage2-$rft
RFT_DATA=string_task/stage2_level2_${rft//-/_}

# ---- the machine

PYTHON_BIN=.venv/bin/python
[[ -x $PYTHON_BIN ]] || fail "no .venv; run: bash bash/setup.sh"
if [[ $ENGINE == verl ]] && ! compgen -G '.venv/lib/python3*/site-packages/verl' >/dev/null; then
  fail "ENGINE=verl needs verl, Ray and vLLM, which .venv does not have; run: bash bash/setup.sh --full"
fi
# Where .pyc files are switched off, each of the ten processes of a verl run would compile torch and verl anew.
unset PYTHONDONTWRITEBYTECODE

cores=$(env -u OMP_NUM_THREADS nproc)
if [[ $DEVICE == cpu ]]; then
  export CUDA_VISIBLE_DEVICES=""
  # Small matrices: a second thread gains little, and waits for ever where something else has its core.
  if [[ $ENGINE == single ]]; then export OMP_NUM_THREADS=1; fi
  PROCESSES=${PROCESSES:-$((cores < 2 ? 1 : 2))} # a small model gains nothing from more
  LANES=${LANES:-$((cores < 4 ? cores : 4))}
else
  PROCESSES=${PROCESSES:-${N_GPUS:-$(n_gpus)}}
  LANES=${LANES:-1}
fi
if [[ $ENGINE == verl ]]; then LANES=1; fi # Ray takes the whole machine
machine=(run.device="$DEVICE" run.processes="$PROCESSES") # verl starts one process on a CPU, whatever else runs there
if [[ $ENGINE == verl ]]; then machine=(run.device="$DEVICE" ${N_GPUS:+run.processes="$N_GPUS"}); fi

# ---- running commands

# Starts a command that dies with the shell that started it, even if that is killed with -9: nothing runs on unseen, and
# the same script can be started again at once.
BOUND=("$PYTHON_BIN" -I -S -c
  'import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execvp(sys.argv[1], sys.argv[1:])')

# show WORDS…: the command as a person would type it.
show() { { printf '+ %s' "$1" && printf ' %q' "${@:2}" && echo; } >&2; }

# step NAME [key=value …]: print and run one entry point of examples/.
step() {
  show "$PYTHON_BIN examples/$1.py" "${@:2}"
  if [[ -z ${DRY_RUN:-} ]]; then
    "${BOUND[@]}" "$PYTHON_BIN" "examples/$1.py" "${@:2}"
  elif [[ $1 == train_* ]]; then
    "$PYTHON_BIN" "examples/$1.py" "${@:2}" --dry-run
  fi
}

# script NAME [options]: run another script of bash/ with the same settings, with a line at its start and at its end.
script() {
  local began
  began=$(now)
  if [[ -z ${IN_LANE:-} ]]; then echo >&2; fi
  printf '== %s  %s\n' "$(clock)" "bash/$1.sh${2:+ ${*:2}}" >&2
  DEPTH=$((DEPTH + 1)) "${BOUND[@]}" bash "bash/$1.sh" "${@:2}"
  printf '== %s  %s: done in %s s\n' "$(clock)" "bash/$1.sh${2:+ ${*:2}}" $(($(now) - began)) >&2
  if [[ -n ${TIMES:-} ]]; then
    printf '%s\t%s\t%s\t%s\t%s\n' "$BEGAN" "$SEED" "$DEPTH" "$*" $(($(now) - began)) >>"$TIMES"
  fi
}

now() { printf '%(%s)T' -1; }

export BEGAN=${BEGAN:-$(now)} DEPTH=${DEPTH:-0} # the command that the person typed: its start, and scripts below it

# clock: minutes and seconds since then.
clock() { local passed=$(($(now) - BEGAN)) && printf '%02d:%02d' $((passed / 60)) $((passed % 60)); }

# in_lanes SCRIPT "WORD …" [options]: bash/SCRIPT.sh WORD options for every word, $LANES at a time, each on one core and
# its lines marked with the word. The first that fails ends the others, and its exit code is the result.
in_lanes() {
  local word code=0
  if ((LANES == 1)) || [[ -n ${DRY_RUN:-} ]]; then
    for word in $2; do script "$1" "$word" "${@:3}"; done
    return
  fi
  lane=("$1" "${@:3}")
  at_once "$LANES" start_lane $2 || code=$?
  sleep 0.2 # the last lines are still on their way through sed
  if ((code)); then echo "error: $failed stopped with exit code $code, and the lanes beside it were ended" >&2; fi
  return "$code"
}

start_lane() {
  export PROCESSES=1 OMP_NUM_THREADS=1 IN_LANE=$1
  exec > >(sed -u "s/^/$1 | /") 2>&1
  exec "${BOUND[@]}" bash -c 'source bash/lib.sh; script "$@"' lane "${lane[0]}" "$1" "${lane[@]:1}"
}

# at_once N START WORD…: the function START for every word, in the background, N at a time. The first that fails ends the
# others; its exit code is the result and its word is left in $failed.
at_once() {
  local at_most=$1 start=$2 running=() left pid status code=0
  local -A word_of
  shift 2
  while (($# + ${#running[@]})); do
    while (($# && ${#running[@]} < at_most)); do
      "$start" "$1" </dev/null &
      running+=($!) word_of[$!]=$1
      shift
    done
    left=()
    for pid in "${running[@]}"; do
      if kill -0 "$pid" 2>/dev/null; then left+=("$pid"); continue; fi
      status=0
      wait "$pid" 2>/dev/null || status=$?
      if ((status && !code)); then code=$status failed=${word_of[$pid]}; fi
    done
    running=("${left[@]}")
    if ((code)); then break; fi
    if ((${#running[@]})); then sleep 0.1; fi
  done
  if ((${#running[@]})); then
    kill -KILL "${running[@]}" 2>/dev/null || true
    wait "${running[@]}" 2>/dev/null || true
  fi
  return "$code"
}

# ---- several seeds

# each_seed FUNCTION [words …]: calls it for the seeds SEED … SEED+SEEDS-1, with the end of their folders' names in $suffix.
each_seed() {
  local seed suffix
  for ((seed = SEED; seed < SEED + SEEDS; seed++)); do
    suffix=""
    if ((seed != SEED)); then suffix=-seed$seed; fi
    "$@"
  done
}

# run_seeds [options]: the section's run_seed.sh for every seed, then its summarise.sh; how long each stage took.
run_seeds() {
  ((SEEDS == 1 || SEED == 0)) || fail "SEED=$SEED SEEDS=$SEEDS: give one of the two; SEEDS=N runs seeds 0 to N-1"
  if [[ -z ${DRY_RUN:-} ]]; then
    mkdir -p "$RESULTS_DIR/$SECTION"
    export TIMES=$RESULTS_DIR/$SECTION/times.tsv # start of the command, seed, depth, stage, its seconds
    tell_machine "$RESULTS_DIR/$SECTION/machine.json"
  fi
  each_seed run_one_seed "$@"
  script "$SECTION/summarise" $(force_in "$@")
}

# tell_machine FILE: what the study runs on, unless that is told there already.
tell_machine() {
  if [[ -f $1 ]]; then return; fi
  "$PYTHON_BIN" -c 'import json; from compositionality.report.record import machine; print(json.dumps(machine()))' >"$1.new"
  mv "$1.new" "$1"
}

run_one_seed() {
  SEED=$seed DATA_DIR=$DATA_DIR$suffix CKPT_DIR=$CKPT_DIR$suffix RESULTS_DIR=$RESULTS_DIR$suffix \
    script "$SECTION/run_seed" "$@"
}

# summarise [key=value …]: the table over the seeds → seeds.json; the figure beside it. The key=value are the
# table's (markdown=README.md: into the section's place there).
summarise() {
  local inputs=() folder=$RESULTS_DIR/$SECTION
  each_seed add_accuracy
  step summarise_seeds "inputs=[$(IFS=,; echo "${inputs[*]}")]" output="$folder/seeds.json" place="$SECTION" "$@"
  step draw_figure seeds="$folder/seeds.json" output="$folder/accuracy_by_level" title="$study" $(force_in "$@")
}

add_accuracy() { inputs+=("seed$seed:$RESULTS_DIR$suffix/$SECTION/accuracy.json"); }

# force_in "$@": --force if it is among the arguments, for the second command of a script.
force_in() {
  local word
  for word in "$@"; do if [[ $word == --force ]]; then echo --force; fi; done
}

# ---- problems. Every problem file, rollout folder and data set is named by its path below $DATA_DIR.

# shellcheck source=bash/problems.sh
source bash/problems.sh

# create_problems TASK_task/NAME [key=value …]: one file of string or Countdown problems, in the profile's mode.
create_problems() {
  local task=${1%%_task/*}
  local -n task_options=${task^^}_OPTIONS
  step create_problems task="$task" output="$DATA_DIR/$1.parquet" mode="$MODE" workers="$cores" \
    $("${task}_options_$MODE" "${1#*/}") "${task_options[@]}" "${@:2}"
}

# ---- answers

# collect MODEL PROBLEMS OUTPUT [key=value …]: rollouts, judged.
collect() {
  step collect_rollouts model="$1" problems="$DATA_DIR/$2.parquet" output="$DATA_DIR/$3" engine="$ROLLOUT_ENGINE" seed="$SEED" \
    max_prompt_tokens="$MAX_PROMPT" max_tokens="$MAX_RESPONSE" ray_address="${RAY_ADDRESS:-}" "${@:4}"
}

# keep_correct PROBLEMS ROLLOUTS OUTPUT [key=value …]: rejection filter → SFT rows.
keep_correct() {
  step filter_rollouts problems="$DATA_DIR/$1.parquet" "rollouts=[$DATA_DIR/$2]" output="$DATA_DIR/$3" \
    max_correct_ratio="$MAX_CORRECT_RATIO" "${@:4}"
}

# evaluate NAME MODELS [key=value …]: accuracy by level of name:path,name:path,… on the profile's test files; with
# EVALUATE_ON=validation on its validation files, in a folder of its own.
evaluate() {
  local files=("${TEST_FILES[@]}") suffix=""
  if [[ ${EVALUATE_ON:-test} == validation ]]; then files=("${VALIDATION_FILES[@]}") suffix=-validation; fi
  files=("${files[@]/#/$DATA_DIR/}")
  files=("${files[@]/%/.parquet}")
  step evaluate "models=[$2]" "problems=[$(IFS=,; echo "${files[*]}")]" output="$RESULTS_DIR/$1$suffix" engine="$ROLLOUT_ENGINE" \
    seed="$SEED" max_prompt_tokens="$MAX_PROMPT" max_tokens="$MAX_RESPONSE" ray_address="${RAY_ADDRESS:-}" "${@:3}"
}

# passk MODELS [key=value …]: pass@k of name:path,name:path,… on the profile's $PASSK_FILES.
passk() {
  local files=("${PASSK_FILES[@]/#/$DATA_DIR/}")
  files=("${files[@]/%/.parquet}")
  step passk "models=[$1]" "problems=[$(IFS=,; echo "${files[*]}")]" output="$RESULTS_DIR/section44" engine="$ROLLOUT_ENGINE" \
    n_samples="$PASSK_SAMPLES" "levels=[$(IFS=,; echo "${PASSK_LEVELS[*]}")]" per_level="$PASSK_PER_LEVEL" seed="$SEED" \
    max_prompt_tokens="$MAX_PROMPT" max_tokens="$MAX_RESPONSE" ray_address="${RAY_ADDRESS:-}" "${@:2}"
}

# prior_of SECTION: prior=FOLDER if the section's models have been evaluated: how hard the problems are.
prior_of() { if [[ -f $RESULTS_DIR/$1/by_problem.parquet ]]; then echo "prior=$RESULTS_DIR/$1"; fi; }

# models_there NAME…: name:path,… of the models that are made; of $MODEL_PATH alone (called $MODEL_NAME) where it is given.
models_there() {
  local name there=()
  if [[ -n ${MODEL_PATH:-} ]]; then
    there=("${MODEL_NAME:-model}:$MODEL_PATH")
    set --
  fi
  for name in "$@"; do
    if [[ -d $(model_of "$name") || -n ${DRY_RUN:-} ]]; then there+=("$name:$(model_of "$name")"); fi
  done
  (IFS=,; echo "${there[*]}")
}

# ---- training

# pretrain [key=value …]: a base model from nothing → $BASE_MODEL.
pretrain() {
  step pretrain_tiny output="$BASE_MODEL" seed="$SEED" run.processes="$PROCESSES" "$@"
}

# train_sft MODEL DATA RUN [overrides …]: SFT on DATA/train.parquet → $CKPT_DIR/RUN.
train_sft() {
  local data=$DATA_DIR/$2
  step train_sft engine="$ENGINE" model.path="$1" data.train_file="$data/train.parquet" data.val_file="$data/test.parquet" \
    data.seed=$((SEED + 1)) trainer.output="$CKPT_DIR/$3" "${machine[@]}" "${SFT[@]}" "${@:4}"
}

# train_grpo MODEL PROBLEMS RUN [overrides …]: GRPO → $CKPT_DIR/RUN. PROBLEMS: one file or several, "a,b".
train_grpo() {
  local files="$DATA_DIR/${2//,/.parquet,$DATA_DIR/}.parquet" validation sampler=$ROLLOUT_ENGINE
  validation=("${VALIDATION_FILES[@]/#/$DATA_DIR/}")
  validation=("${validation[@]/%/.parquet}")
  if [[ $ENGINE == verl ]]; then validation=("${validation[0]}") sampler=vllm; fi
  step train_grpo engine="$ENGINE" model.path="$1" "data.train_files=[$files]" \
    "data.val_files=[$(IFS=,; echo "${validation[*]}")]" data.seed=$((SEED + 1)) data.max_prompt_tokens="$MAX_PROMPT" \
    rollout.engine="$sampler" rollout.seed=$((SEED + 1)) rollout.max_tokens="$MAX_RESPONSE" \
    trainer.output="$CKPT_DIR/$3" "${machine[@]}" "${RL[@]}" "${@:4}"
}

# rft_model ITERATION: the model that an iteration of RFT starts from.
rft_model() {
  if (($1 == 0)); then echo "$CKPT_DIR/stage1-rft/final"; else echo "$CKPT_DIR/$RFT_RUN-iteration$(($1 - 1))/final"; fi
}

# model_of NAME: the model that a name in the tables stands for.
model_of() {
  case $1 in
    base) echo "$BASE_MODEL" ;;
    stage1) echo "$CKPT_DIR/stage1-rft/final" ;;
    rl-level1 | rl-level2 | rl-level1to2 | rl-level2-verl | rl-level2-shuffled | rl-level2-format) echo "$CKPT_DIR/stage2-$1/final" ;;
    rft | rft-matched) echo "$CKPT_DIR/stage2-$1-iteration$((RFT_ITERATIONS - 1))/final" ;;
    string-base) model_of stage1 ;; # section 4.3: taught strings only …
    string-rl-level1to2) model_of rl-level1to2 ;;
    multi-base) echo "$CKPT_DIR/stage1-multi/final" ;; # … or strings and two-number Countdown
    multi-rl-level1 | multi-rl-level1to2) echo "$CKPT_DIR/stage2-$1/final" ;;
    *) fail "no model $1; there are: base stage1 rl-level1 rl-level2 rl-level1to2 rl-level2-verl rft rft-matched" \
      "rl-level2-shuffled rl-level2-format string-base string-rl-level1to2 multi-base multi-rl-level1 multi-rl-level1to2" ;;
  esac
}
