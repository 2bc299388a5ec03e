#!/usr/bin/env bash
# Behaviour injection on Qwen2.5-1.5B as in the paper (arXiv 2505.18917), on two GPUs: SFT on 2,000 iGSM solutions with
# behaviours, 200 steps of GRPO, greedy accuracy at 20 and 25 operations. The paper: under an hour of SFT and eight of RL
# on two A100s; 45 % and 34 % after SFT, 91 % and 83 % after RL. Without behaviours, NAME=vanilla BEHAVIOURS="": 40 % and
# 29 %, 46 % and 36 %. Not run with this model yet.
# Reads $MODEL_PATH (a folder or a Hub id). Writes igsm_task, NAME/{base,sft,rl} and the results NAME.
# On two CPU cores: PROFILE=smoke, the same steps in the smallest sizes with a model trained from scratch.
# Usage: [N_GPUS=2] [DRY_RUN=1] bash bash/behavior_injection/run_qwen2.5_1.5b.sh [key=value of RL …]
export PROFILE=${PROFILE:-paper}
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

NAME=${NAME:-bridge}
BEHAVIOURS=${BEHAVIOURS-subgoals=true analysis=2 reflection=0.1}
STEPS=200
SFT=(trainer.epochs=5 trainer.batch_rows=128 data.max_length=3072 optim.lr=5e-6)
RL=(
  data.prompts_per_step=32 data.max_prompt_tokens=1024 rollout.n=32 rollout.max_tokens=2560 optim.lr=1e-6
  algorithm.loss_aggregation=sequence algorithm.kl=k3 algorithm.kl_coef=0.001 algorithm.entropy_coef=0.001
  trainer.steps="$STEPS" trainer.eval_every=5 trainer.save_every=100 verl.trainer.total_training_steps="$STEPS"
)
MODEL_PATH=${MODEL_PATH:-Qwen/Qwen2.5-1.5B} TEMPLATE=bash/behavior_injection/think.jinja # the system prompt, and an open thought
problems=$DATA/igsm_task rows=$DATA/igsm_task/$NAME models=$CKPT/$NAME tags=true
read -ra behaviours <<<"$BEHAVIOURS"
unset OUTPUT
layer() { echo "step=behavior_injection/$1"; }

if [[ $PROFILE != paper ]]; then # its own model, template and sizes
  base=$CKPT/base tags=false SFT=() RL=()
  run pretrain_tiny "$(layer stage0_pretrain)" output="$base" seed="$SEED"
else
  base=$models/base
  run set_chat_template model="$MODEL_PATH" output="$base" chat_template="$TEMPLATE" eos_token='<|im_end|>'
fi
run create_problems set=igsm output="$problems" seed="$SEED" test_seed="$TEST_SEED"
run write_solutions problems="$problems/sft.parquet" output="$rows" tags="$tags" "${behaviours[@]}"
run train_sft "$(layer sft)" model.path="$base" data.train_files="[$rows/train.parquet]" trainer.output="$models/sft" "${SFT[@]}"
run train_grpo "$(layer rl)" model.path="$models/sft/final" data.train_files="$problems/rl.parquet" \
  data.val_files="$problems/validation.parquet" trainer.output="$models/rl" "${RL[@]}" "$@"
run evaluate "$(layer evaluate)" models="['sft:$models/sft/final','rl:$models/rl/final']" problems="$DATA/@igsm_test" \
  output="$RESULTS/$NAME" temperature=0
