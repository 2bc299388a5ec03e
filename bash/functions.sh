# shellcheck shell=bash disable=SC2034,SC2154 # sourced by bash/env.sh
# What the scripts under bash/ call. Sourced by bash/env.sh, never run.

fail() { echo "error: $*" >&2; exit 2; }

# default_python: of .venv; where there is none, of the active environment if it has the package (not only this folder).
default_python() {
  if [[ -x .venv/bin/python ]] || ! python -P -c "import compositionality.study.environment" 2>/dev/null; then
    echo .venv/bin/python
  else
    command -v python
    echo "no .venv here; this runs with $(command -v python)" >&2
  fi
}

# model_name PATH: of a run folder's final/ or best/ the run's name, else the folder's.
model_name() {
  local path=${1%/}
  case ${path##*/} in final | best) path=${path%/*} ;; esac
  path=${path##*/}
  echo "${path//[!A-Za-z0-9._-]/-}"
}

# named WORD QUESTION: the word, if it is a name; an option or key=value is none.
named() {
  if [[ -z $1 || $1 == -* || $1 == *=* ]]; then fail "$2"; fi
  echo "$1"
}

# A command that ends when the script that started it is killed, even with -9: the script can be started again at once.
bound=() with=()
if [[ -n $(command -v setpriv) ]]; then bound=(setpriv --pdeathsig KILL); fi

# share "$@", said by a script of several steps: an override reaches the steps that know it; one that none knows, or a step
# cannot take, is refused. LEFT_OUT, STEP:KEY …, is what steps do not know.
share() {
  if [[ -n ${LEFT_OUT+set} || " $* " != *=* && " $* " != *" --"* ]]; then return; fi # set: by the script that started this one
  LEFT_OUT=$("$PYTHON" -m compositionality.study left_out "$started" "$@")
  export LEFT_OUT
}

# run NAME [key=value …]: print and run examples/NAME.py with this profile. With DRY_RUN it is only checked: by itself, or
# by the study that has started this script and reads the command from $DRY_STEPS.
run() {
  local word words=(profile="$PROFILE/$ENGINE") step=$1
  if [[ " $* " =~ " "((task|set)=[^ ]+) ]]; then step+=/${BASH_REMATCH[1]}; fi
  for word in "${@:2}"; do
    if [[ " ${LEFT_OUT:-} " != *" $step:${word%%=*} "* ]]; then words+=("$word"); fi
  done
  if [[ -n ${LIST_STEPS:-} ]]; then printf '%s\0' + "$1" "${words[@]}" && return; fi
  { printf '+ %s examples/%s.py' "$PYTHON" "$1" && printf ' %q' "${words[@]}" && echo; } >&2
  if [[ -z ${DRY_RUN:-} ]]; then "${bound[@]}" "$PYTHON" "examples/$1.py" "${words[@]}"; return; fi
  if [[ -n ${DRY_STEPS:-} ]]; then printf '%s\0' + "$1" "${words[@]}" >>"$DRY_STEPS" && return; fi
  "$PYTHON" "examples/$1.py" "${words[@]}" --dry-run
}

# script NAME [options]: another script of bash/, with the variables ${with[@]}; its seconds go to $TIMES.
script() {
  local began=$SECONDS
  printf '== %(%H:%M:%S)T  bash/%s.sh%s\n' -1 "$1" "${2:+ ${*:2}}" >&2
  DEPTH=$((${DEPTH:-0} + 1)) "${bound[@]}" env "${with[@]}" bash "bash/$1.sh" "${@:2}"
  printf '== %(%H:%M:%S)T  bash/%s.sh%s: done in %s s\n' -1 "$1" "${2:+ ${*:2}}" $((SECONDS - began)) >&2
  if [[ -n ${TIMES:-} ]]; then
    printf '%s\t%s\t%s\t%s\t%s\n' "$BEGAN" "${REPLICATE:-$SEED}" $((${DEPTH:-0} + 1)) "$*" $((SECONDS - began)) >>"$TIMES"
  fi
}

# hold_out FOLDER: sets held_out to data.val_file=FOLDER/test.parquet, or to nothing if the data were made without it.
hold_out() {
  held_out=("data.val_file=$1/test.parquet")
  if [[ -f $1/train.parquet && ! -f $1/test.parquet ]]; then held_out=(); fi
}

# list WORD…: a,b for key=[a,b]; a word with more than the letters of a plain path is quoted.
list() {
  local LC_ALL=C word words=()
  for word in "$@"; do
    if [[ $word == *[!A-Za-z0-9_./:-]* ]]; then word="'${word//\'/\'\'}'"; fi
    words+=("$word")
  done
  (IFS=,; echo "${words[*]}")
}

# files NAME…: problem files by their names below $DATA_DIR, a.parquet,b.parquet.
files() {
  local name paths=()
  for name in "$@"; do paths+=("$DATA_DIR/$name.parquet"); done
  list "${paths[@]}"
}
