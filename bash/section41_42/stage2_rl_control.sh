#!/usr/bin/env bash
# Stage 2, negative controls: RL on level 2 as ever, but for the reward. CONTROL=shuffled: the rewards of a step are permuted
# across its completions. CONTROL=format: a readable, finished answer is rewarded, right or wrong. What RL on level 2
# gains must not be gained here. ENGINE=single only.
# Reads what stage2_rl_level2.sh reads. Writes $CKPT_DIR/stage2-rl-level2-shuffled or stage2-rl-level2-format. Tiny: two
# minutes on one core.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

case ${CONTROL:-} in
  shuffled) reward=reward.shuffle=true ;;
  format) reward=reward.shape=format ;;
  *) fail "CONTROL=${CONTROL:-}: choose shuffled or format" ;;
esac
if [[ $ENGINE != single ]]; then fail "CONTROL=$CONTROL: only ENGINE=single has this reward"; fi
MODEL_PATH=${MODEL_PATH:-$SEED_CKPT_DIR/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$(files string_task/stage2_level2/train)}
VAL_FILES=${VAL_FILES-$(files $RL_VALIDATION_FILES)}
OUTPUT=${OUTPUT:-$CKPT_DIR/stage2-rl-level2-$CONTROL}

run train_grpo experiment=section41_42/stage2_rl_level2 engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_files="[$TRAIN_FILES]" data.val_files="[$VAL_FILES]" data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) \
  rollout.engine="$RL_ROLLOUT_ENGINE" trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "$reward" "$@"
