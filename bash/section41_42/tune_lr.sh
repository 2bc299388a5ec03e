#!/usr/bin/env bash
# The learning rate of an arm of Stage 2, RL or RFT alike: for every seed of $TUNING_SEEDS (10 and up; default 10 11), which no
# result has, the base model and Stage 1, then the arm at every rate of $RATES. Rule, fixed beforehand: the rate with the
# highest accuracy, mean over seeds and levels, on validation problems of trained functions; of equal ones the lowest.
# Held-out functions and test problems choose nothing. Other keys of the profile's settings stay as they are.
# Reads nothing. Writes data, checkpoints and results under …/tuning-seedN. Tiny: ten minutes a seed, then two for RL and one
# to six for RFT at each rate, on one core.
# Usage: ARM=rft-matched RATES="1e-4 3e-4 1e-3" bash bash/section41_42/tune_lr.sh [key=value …]
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

ARM=${ARM:-rl-level2} RATES=${RATES:-1e-4 3e-4 1e-3} TUNING_SEEDS=${TUNING_SEEDS:-10 11}
folders=("$DATA_DIR" "$CKPT_DIR" "$RESULTS_DIR") results=()
unset MODEL_PATH
for seed in $TUNING_SEEDS; do
  if [[ ! $seed =~ ^1[0-9]$ ]]; then fail "TUNING_SEEDS=$TUNING_SEEDS: the seeds kept for tuning are 10 to 19"; fi
  export SEED=$seed DATA_DIR=${folders[0]}/tuning-seed$seed CKPT_DIR=${folders[1]}/tuning-seed$seed \
    RESULTS_DIR=${folders[2]}/tuning-seed$seed/$ARM
  export SEED_CKPT_DIR=$CKPT_DIR
  if [[ -n $PRETRAINS ]]; then export BASE_MODEL=$CKPT_DIR/base; fi
  with=()
  for stage in stage0_pretrain stage1_create_problems stage1_create_train_data stage1_rft; do
    script section41_42/$stage
  done
  script section41_42/stage2_create_problems "files=[stage2_level2/train,validation*]"
  found=$("$PYTHON" -m compositionality.study arm "$ARM")
  eval "$found" # SCRIPT, ARGUMENTS and with (its variables), MODEL
  arm=("${with[@]}") models=()
  for rate in $RATES; do
    name=$ARM-lr$rate
    with=("${arm[@]/stage2-$ARM/stage2-$name}" RFT="$name")
    script "$SCRIPT" "${ARGUMENTS[@]}" optim.lr="$rate" "$@"
    models+=("$rate:${MODEL/stage2-$ARM/stage2-$name}")
  done
  with=(EVALUATE_ON=validation)
  script section41_42/evaluate "models=[$(list "${models[@]}")]"
  results+=("$RESULTS_DIR/section41_42-validation/results.parquet")
done
if [[ -z ${DRY_RUN:-}${LIST_STEPS:-} ]]; then "$PYTHON" -m compositionality.study rates "${results[@]}"; fi
