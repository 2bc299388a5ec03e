#!/usr/bin/env bash
# Set-up, then the main job on two CPU cores with a model made from nothing: pretrain → Stage 1 (problems, rollouts,
# filter, SFT) → Stage 2 (GRPO on compositions of two functions) → accuracy by level of the three models.
# Reads nothing. Writes .venv, data/tiny, checkpoints/tiny, results/tiny. Under 20 minutes on 2 cores after set-up; a second
# run re-uses what is there. Usage: bash bash/quickstart.sh [--cpu|--gpu] [--force]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

setup=()
force=()
for word in "$@"; do
  case "$word" in
    --cpu | --gpu) setup+=("$word") ;;
    --force) force+=("$word") ;;
    *)
      echo "error: quickstart.sh: unknown option $word; known: --cpu --gpu --force" >&2
      exit 2
      ;;
  esac
done

began=$SECONDS
bash bash/setup.sh "${setup[@]}"
ready=$SECONDS
export PROFILE=tiny
for script in stage0_pretrain stage1_create_problems stage1_create_train_data stage1_rft stage2_create_problems \
  stage2_rl_level2 evaluate; do
  printf '\n== bash/section41_42/%s.sh\n' "$script" >&2
  bash "bash/section41_42/$script.sh" "${force[@]}"
done

cat <<END

The table above: results/tiny/section41_42/accuracy.json and .parquet; every answer behind it: results/tiny/section41_42/rollouts
Models:          checkpoints/tiny/{base,stage1-rft/final,stage2-rl-level2/final}
Problems:        data/tiny/string_task
Time:            set-up $((ready - began)) s, main job $((SECONDS - ready)) s
All arms of sections 4.1 and 4.2 (RL on level 1, on both, iterative RFT): bash bash/section41_42/run_all.sh
END
