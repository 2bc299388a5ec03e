#!/usr/bin/env bash
# Stage 2, negative controls: RL on level 2 as ever, but for the reward, in which nothing tells right answers from wrong
# ones. What RL on level 2 gains must not be gained here. Groups are left out by these rewards, not by correctness, and no
# best checkpoint is chosen. ENGINE=single only. CONTROL:
#   shuffled  the rewards of a step permuted across all its completions: as many, on any answer
#   random    1 with the probability of a right answer in that step, else 0, at RL's entropy: the weight of the entropy in the
#             loss is $CONTROLS_ENTROPY_COEF times what is missing to that of the finished RL on level 2 at the same step. So
#             what RL gains by a surer policy alone is gained here too
#   format    1 for a readable, finished answer, right or wrong
# Gradients of shuffled and random rewards are noise, at RL's rate enough to destroy the atoms: they have $CONTROLS_LR.
# Reads what stage2_rl_level2.sh reads; random: $CKPT_DIR/stage2-rl-level2/metrics.jsonl. Writes
# $CKPT_DIR/stage2-rl-level2-{shuffled,random,format}. Tiny: two to four minutes on one core.
source "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

own=(reward.control="${CONTROL:-}" trainer.keep_best=false)
case ${CONTROL:-} in
  shuffled) ;;
  random) own+=(algorithm.entropy_like="$CKPT_DIR/stage2-rl-level2/metrics.jsonl" algorithm.entropy_coef="$CONTROLS_ENTROPY_COEF") ;;
  format) CONTROLS_LR= ;;
  *) fail "CONTROL=${CONTROL:-}: choose shuffled, random or format" ;;
esac
if [[ -n $CONTROLS_LR ]]; then own+=(optim.lr="$CONTROLS_LR"); fi
if [[ $ENGINE != single ]]; then fail "CONTROL=$CONTROL: only ENGINE=single has this reward"; fi
MODEL_PATH=${MODEL_PATH:-$SEED_CKPT_DIR/stage1-rft/final}
TRAIN_FILES=${TRAIN_FILES:-$(files string_task/stage2_level2/train)}
VAL_FILES=${VAL_FILES-$(files $RL_VALIDATION_FILES)}
OUTPUT=${OUTPUT:-$CKPT_DIR/stage2-rl-level2-$CONTROL$OF_MODEL}

run train_grpo experiment=section41_42/stage2_rl_level2 engine="$ENGINE" model.path="$MODEL_PATH" \
  data.train_files="[$TRAIN_FILES]" data.val_files="[$VAL_FILES]" data.seed=$((SEED + 1)) rollout.seed=$((SEED + 1)) \
  rollout.engine="$RL_ROLLOUT_ENGINE" trainer.output="$OUTPUT" run.device="$DEVICE" run.processes="$TRAIN_PROCESSES" "${own[@]}" "$@"
