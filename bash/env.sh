# shellcheck shell=bash disable=SC2034 # its variables are for the scripts that source it
# What the scripts under bash/ share. Sourced, never run: settings from the profile, and how a command is run.
#
#   PROFILE     tiny (default without a GPU) | smoke | small | single (default with one) | instruct | paper: a file in
#               compositionality/config/profile/; its sizes are variables (rft.prompts: RFT_PROMPTS)
#   ENGINE      single: the single-file trainers | verl: verl, Ray and vLLM (bash/setup.sh --full); the profile has a default
#   ROLLOUT_ENGINE  what samples completions: builtin | vllm | ray | transformers | openai; the profile has a default
#   BASE_MODEL  the model that a study starts from, a folder or a Hub id (default: the profile's)
#   MODEL_PATH  the model that one script starts from, likewise; each says its default. Of run_all.sh, study.sh: the base model.
#               What RL and an evaluation make of another one ends in its MODEL_NAME (default: its folder's), beside the study's
#   CHAT_TEMPLATE  own | llama-3.1 | plain | qwen2.5 | qwen3 | a Jinja file: of the base model, which stage 0 makes of it
#               ($CKPT_DIR/base, weights linked) unless it is its own; default: the profile's. MODEL_PATH of other scripts
#               is taken as it is
#   SECTION     section43: the scripts of section 4.1 work in the folders of section 4.3 (default section41_42)
#   DATA_DIR    problems and training data (default data/$PROFILE, with -verl where verl is not the profile's engine,
#               -countdown in section 4.3, -seed$SEED for other seeds than 0, -split$FUNCTION_SPLIT for other splits than 0)
#   CKPT_DIR, RESULTS_DIR  trained models; rollouts and tables (default checkpoints/… and results/…, likewise). A folder that
#               you name is used as it is: name one for each profile, engine, section and SEED; only SEEDS=N adds -seed1 …
#   SEED_CKPT_DIR  where base/ and stage1-rft/ are, which the splits of a seed share (default $CKPT_DIR without -split…)
#   OUTPUT, TRAIN_FILES, VAL_FILES  of a training script: its run folder, its problem files
#   SEED        of problems, rollouts and training (default 0)
#   FUNCTION_SPLIT  which functions are held out: 0 the paper's (default), n a random division of all functions, drawn from n
#   SEEDS=N     run_all.sh, study.sh, quickstart.sh: seeds 0 … N-1, then their summary
#   TEST_SEED   of the test problems, the same whatever SEED is (default 2027)
#   ARMS        run_all.sh, study.sh, quickstart.sh: which arms (those of compositionality/config/study/)
#   LANES, PROCESSES  arms at a time; processes of one training where nothing runs beside it (default: by cores or GPUs)
#   BACKEND     where run_all.sh, study.sh and passk.sh run scripts: local | ray | slurm
#   NNODES, RAY_ADDRESS, N_GPUS  nodes, an existing Ray cluster, GPUs per node (default: all that CUDA_VISIBLE_DEVICES shows)
#   PYTHON      the interpreter (default .venv/bin/python, else the active python if it has the package, which is said)
#   DRY_RUN=1   print every command and refuse what its start would refuse, but for inputs that are not there yet; run nothing
# Lists of files are a.parquet,b.parquet: an element with blanks, commas … in quotes.

source "$(dirname "${BASH_SOURCE[0]}")/help.sh"
set -euo pipefail
started=$(realpath "$0")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

source bash/functions.sh

PYTHON=${PYTHON:-$(default_python)}
export PYTHON
[[ -n $(command -v "$PYTHON") ]] || fail "no $PYTHON; run: bash bash/setup.sh"
# Where .pyc files are switched off, each of the ten processes of a verl run would compile torch and verl anew.
unset PYTHONDONTWRITEBYTECODE
if [[ ${SETTINGS_OF:-none} != "${PROFILE:-}/${ENGINE:-}/${SECTION:-}/${SEED:-}/${SEEDS:-}/${FUNCTION_SPLIT:-}" ]]; then # else inherited from the script that started this one
  settings=$("$PYTHON" -m compositionality.study environment)
  eval "$settings"
fi

# Problems and data of Stage 1, which knows all functions.
SEED_DATA_DIR=${DATA_DIR%-split$FUNCTION_SPLIT}

# Iterative RFT: RFT is in the names of its folders; budget and filter are explained in bash/section41_42/stage2_rft_loop.sh.
export RFT_BUDGET=${RFT_BUDGET:-original} RFT_FILTER=${RFT_FILTER:-}
case $RFT_BUDGET in
  original) RFT=${RFT:-rft} ;;
  completions) RFT=${RFT:-rft-matched} RFT_SAMPLES=$RFT_MATCHED_SAMPLES ;;
  problems | updates | tokens) RFT=${RFT:-rft-$RFT_BUDGET} RFT_SAMPLES=$RFT_MATCHED_SAMPLES ;;
  *) fail "RFT_BUDGET=$RFT_BUDGET: choose original, problems, completions, updates or tokens" ;;
esac
case $RFT_FILTER in
  "") rft_filter=() ;;
  all) rft_filter=(max_correct_ratio=null) ;;
  paper) rft_filter=(max_correct_ratio=1.0) ;;
  *) fail "RFT_FILTER=$RFT_FILTER: choose all or paper" ;;
esac

# A model of a person's own has a name, and what is made of it folders that the study does not use.
if [[ -n ${MODEL_PATH:-} && -z ${MODEL_NAME:-} ]]; then MODEL_NAME=$(model_name "$MODEL_PATH"); fi
OF_MODEL=${OF_MODEL-${MODEL_PATH:+-$MODEL_NAME}} # empty for the models of an arm

# verl starts a process for every GPU by itself, and validates on one file.
TRAIN_PROCESSES=$PROCESSES RL_VALIDATION_FILES=$STRING_VALIDATION_FILES
if [[ $ENGINE == verl ]]; then TRAIN_PROCESSES=${N_GPUS:-null} RL_VALIDATION_FILES=${STRING_VALIDATION_FILES%% *}; fi
