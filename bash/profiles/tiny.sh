# Two CPU cores, a from-scratch model of 0.2 M parameters, minutes. Sourced by bash/lib.sh.
DEVICE=cpu
BASE_MODEL=${BASE_MODEL:-$CKPT_DIR/base}   # made here: bash/section41_42/stage0_pretrain.sh
ENGINE=vllm
PRETRAIN=(steps=6000)

# Problems: clean mode, compact prompts, chains of functions with frozen parameters.
MODE=clean
STRING_OPTIONS=(style=compact "drop=[0,3]" frozen_parameters=true alphabet=abcdefghij "input_length=[3,6]" max_length=10)
STAGE1_PROBLEMS=6000
STAGE2_PROBLEMS=20000
LEVELS=6
TEST_PER_LEVEL=256
VALIDATION_PER_LEVEL=64
PROBLEM_FILES=(stage2_level1/train stage2_level2/train stage2_level1to2/train validation test_trained test_heldout)
LEVEL1TO2=stage2_level1to2/train
VALIDATION_FILE=validation
TEST_FILES=(test_trained test_heldout)
MAX_PROMPT=64                            # tokens
MAX_RESPONSE=192

# Stage 1: rollouts under visible definitions, then SFT with the definitions hidden.
STAGE1_SAMPLES=2
MAX_CORRECT_RATIO=null                   # the base model solves most atoms always; dropping those would leave the hard ones
SFT=(data.max_length=256)
STAGE1_SFT=(trainer.total_epochs=5 optim.lr=1e-3)

# Stage 2: GRPO, and iterative RFT.
RL=(data.train_batch_size=32 actor_rollout_ref.rollout.n=16 actor_rollout_ref.actor.optim.lr=3e-4
  actor_rollout_ref.actor.optim.lr_warmup_steps=5 trainer.total_training_steps=30 trainer.save_freq=20 trainer.test_freq=20
  algorithm.filter_groups.max_num_gen_batches=30)
# After Stage 1 the atoms are nearly solved: dynamic sampling would look for groups with signal without end. The same
# 64 prompts a step instead, whatever they are worth.
RL_LEVEL1=(algorithm.filter_groups.enable=false data.train_batch_size=64)
RFT_ITERATIONS=3
RFT_PROMPTS=6000
RFT_SAMPLES=2
RFT_SFT=(trainer.total_epochs=1 optim.lr=5e-4)
RL_GROUP=16
RL_ROLLOUTS=$((30 * 64 * 16))            # steps × prompts asked × answers
