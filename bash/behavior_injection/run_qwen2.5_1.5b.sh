#!/usr/bin/env bash
# Behaviour injection on Qwen2.5-1.5B as in the paper (arXiv 2505.18917), on two GPUs: SFT on 2,000 iGSM solutions with
# behaviours, 200 steps of GRPO, greedy accuracy at 20 and 25 operations. The paper: under an hour of SFT and eight of RL
# on two A100s; 45 % and 34 % after SFT, 91 % and 83 % after RL. Without behaviours, NAME=vanilla BEHAVIOURS="": 40 % and
# 29 %, 46 % and 36 %. Not run with this model yet.
# Reads $MODEL_PATH (a folder or a Hub id). Writes $DATA_DIR/igsm_task, $CKPT_DIR/$NAME/{base,sft,rl} and $RESULTS_DIR/$NAME.
# On two CPU cores: PROFILE=smoke, the same steps in the smallest sizes with a model made from nothing.
# Usage: [N_GPUS=2] [DRY_RUN=1] bash bash/behavior_injection/run_qwen2.5_1.5b.sh [key=value …]
export SECTION=behavior_injection PROFILE=${PROFILE:-paper}
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"
share "$@"

NAME=${NAME:-bridge}
BEHAVIOURS=${BEHAVIOURS-subgoals=true analysis=2 reflection=0.1}
STEPS=200
SFT=(trainer.epochs=5 trainer.batch_rows=128 data.max_length=3072 optim.lr=5e-6)
RL=(
  data.prompts_per_step=32 data.max_prompt_tokens=1024 rollout.n=32 rollout.max_tokens=2560 optim.lr=1e-6
  algorithm.loss_aggregation=sequence algorithm.kl=k3 algorithm.kl_coef=0.001 algorithm.entropy_coef=0.001
  trainer.steps="$STEPS" trainer.eval_every=5 trainer.save_every=100 verl.trainer.total_training_steps="$STEPS"
)
MODEL_PATH=${MODEL_PATH:-$BASE_MODEL} TEMPLATE=bash/behavior_injection/think.jinja # the system prompt, and an open thought
problems=$DATA_DIR/igsm_task rows=$DATA_DIR/igsm_task/$NAME models=$CKPT_DIR/$NAME tags=true
read -ra behaviours <<<"$BEHAVIOURS"

if [[ $PROFILE != paper ]]; then # its own model, template and sizes
  script section41_42/stage0_pretrain "$@"
  models=$CKPT_DIR/run-$NAME base=$BASE_MODEL tags=false SFT=() RL=()
else
  base=$models/base
  run set_chat_template model="$MODEL_PATH" output="$base" chat_template="$TEMPLATE" eos_token='<|im_end|>' "$@"
fi
script behavior_injection/generate_data "$@"
run write_solutions problems="$problems/sft.parquet" output="$rows" tags="$tags" "${behaviours[@]}" "$@"
run train_sft experiment="$SECTION/sft" engine="$ENGINE" model.path="$base" data.train_file="$rows/train.parquet" \
  trainer.output="$models/sft" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "${SFT[@]}" "$@"
run train_grpo experiment="$SECTION/rl" engine="$ENGINE" model.path="$models/sft/final" \
  data.train_files="[$(files igsm_task/rl)]" data.val_files="[$(files igsm_task/validation)]" \
  rollout.engine="$RL_ROLLOUT_ENGINE" trainer.output="$models/rl" run.device="$DEVICE" \
  run.processes="$TRAIN_PROCESSES" "${RL[@]}" "$@"
run evaluate experiment="$SECTION/evaluate" models="[$(list "sft:$models/sft/final" "rl:$models/rl/final")]" \
  problems="[$(files igsm_task/test igsm_task/test_ood)]" output="$RESULTS_DIR/$NAME" engine="$ROLLOUT_ENGINE" \
  ray_address="${RAY_ADDRESS:-}" temperature=0 "$@"
