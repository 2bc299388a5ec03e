#!/usr/bin/env bash
# Stage 2, negative controls: RL on level 2 as ever, but for the reward. CONTROL=shuffled: the rewards of a step's answers are
# dealt out among them at random. CONTROL=format: a readable, finished answer is rewarded, right or wrong. What RL on level 2
# gains must not be gained here. ENGINE=single only.
# Reads what stage2_rl_level2.sh reads. Writes $CKPT_DIR/stage2-rl-level2-shuffled or stage2-rl-level2-format. Tiny: two
# minutes on one core.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

case ${CONTROL:-} in
  shuffled) reward=reward.shuffle=true ;;
  format) reward=reward.shape=format ;;
  *) fail "CONTROL=${CONTROL:-}: choose shuffled or format" ;;
esac
if [[ $ENGINE != single ]]; then fail "CONTROL=$CONTROL: only ENGINE=single has this reward"; fi
train_grpo "${MODEL_PATH:-$CKPT_DIR/stage1-rft/final}" string_task/stage2_level2/train "stage2-rl-level2-$CONTROL" "$reward" "$@"
