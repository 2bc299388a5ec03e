# shellcheck shell=bash disable=SC2154 # the script that sources it sets the variables
# Sourced by the scripts run_MODEL.sh, after their variables: RL with verl on a node of 8 × 80 GB, with verl's keys and in the form
# of its examples. examples/train_grpo.py runs verl.trainer.main_ppo with them and our reward, and exports the model at the end.
: "${max_prompt:?bash/verl.sh is sourced by scripts run_MODEL.sh}"
[[ -n $VAL_FILES ]] || test_freq=-1

DATA=(
  data.max_prompt_length="$max_prompt"
  data.max_response_length="$max_response"
  data.seed=$((SEED + 1))
)
MODEL=(
  actor_rollout_ref.model.enable_gradient_checkpointing=true
  actor_rollout_ref.model.use_remove_padding=true
)
ACTOR=(
  algorithm.adv_estimator=grpo
  algorithm.use_kl_in_reward=false
  actor_rollout_ref.actor.optim.lr="$lr"
  actor_rollout_ref.actor.optim.weight_decay="$weight_decay"
  actor_rollout_ref.actor.use_dynamic_bsz=true
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=17408
  actor_rollout_ref.actor.loss_agg_mode="$loss_mean"
  actor_rollout_ref.actor.use_kl_loss="$kl_loss"
  actor_rollout_ref.actor.kl_loss_type="$kl_type"
  actor_rollout_ref.actor.kl_loss_coef=0.001
  actor_rollout_ref.actor.entropy_coeff="$entropy"
  actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype=bf16
  actor_rollout_ref.actor.fsdp_config.param_offload=true
  actor_rollout_ref.actor.fsdp_config.optimizer_offload=true
)
ROLLOUT=(
  actor_rollout_ref.rollout.name=vllm
  actor_rollout_ref.rollout.tensor_model_parallel_size=1
  actor_rollout_ref.rollout.dtype=bfloat16
  actor_rollout_ref.rollout.n="$responses"
  actor_rollout_ref.rollout.temperature=1.0
  actor_rollout_ref.rollout.val_kwargs.temperature="$val_temperature"
  actor_rollout_ref.rollout.gpu_memory_utilization=0.8
)
TRAINER=(
  trainer.save_freq="$save_freq"
  trainer.test_freq="$test_freq"
)
OURS=( # keys of train_grpo.py, each of which sets several of verl's
  data.prompts_per_step="$batch"
  algorithm.updates_per_step="$updates"
  algorithm.dynamic_sampling="$dynamic_sampling"
  reward.shape="$reward"
  trainer.steps="$steps" trainer.epochs="$epochs"
)

set -x
"$PYTHON" examples/train_grpo.py engine=verl run.device=gpu ${N_GPUS:+run.processes="$N_GPUS"} model.path="$MODEL_PATH" \
  data.train_files="$TRAIN_FILES" data.val_files="$VAL_FILES" trainer.output="$OUTPUT" "${OURS[@]}" \
  "${DATA[@]/#/verl.}" "${MODEL[@]/#/verl.}" "${ACTOR[@]/#/verl.}" "${ROLLOUT[@]/#/verl.}" "${TRAINER[@]/#/verl.}" \
  "$@" ${DRY_RUN:+--dry-run}
