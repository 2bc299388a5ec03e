# shellcheck shell=bash
# Sourced, never run, by every script before anything else: --help or -h prints the script's head comment, and where the keys
# of its steps are explained.
for word in "$@"; do
  if [[ $word == --help || $word == -h ]]; then
    sed -En '2,/^[^#]/s/^#( |$)//p' "$0"
    steps=$(sed -En 's/^[^#]*\brun ([a-z_]+) .*/\1/p' "$0" | sort -u)
    for step in $steps; do
      if [[ ! -f $(dirname "${BASH_SOURCE[0]}")/../examples/$step.py ]]; then continue; fi # a word of a message
      echo "Its keys (key=value): .venv/bin/python examples/$step.py --help"
    done
    exit
  fi
done
